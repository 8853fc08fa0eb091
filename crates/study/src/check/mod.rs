//! What a claim says: the language of checks.

mod language;
mod parse;

pub use language::{
    Check, Clause, Expr, Fold, Operation, Order, Place, Quantity, Relation, Several, Values, alike,
};
