//! The language of checks, in which claims are written.

mod language;
mod parse;

pub use language::{
    Check, Clause, Expr, Fold, Operation, Order, Place, Quantity, Relation, Several, Values, alike,
};
