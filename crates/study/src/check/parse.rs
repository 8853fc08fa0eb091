//! Parser of checks.

use pest::Parser;
use pest::error::{Error as PestError, ErrorVariant, LineColLocation};
use pest::iterators::Pair;

use super::language::{
    Check, Clause, Expr, Fold, Operation, Order, Place, Quantity, Relation, Several, Values,
};

#[derive(pest_derive::Parser)]
#[grammar = "check/check.pest"]
struct Grammar;

/// Error message: the position where parsing failed, and what is accepted there.
fn refused(text: &str, error: &PestError<Rule>) -> String {
    let (LineColLocation::Pos((line, column)) | LineColLocation::Span((line, column), _)) = error.line_col;
    let rest: String = text.lines().nth(line - 1).unwrap_or_default().chars().skip(column - 1).collect();
    let found = if rest.trim().is_empty() { "the end".to_owned() } else { format!("`{}`", rest.trim()) };
    let rules = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives.as_slice(),
        ErrorVariant::CustomError { .. } => &[],
    };
    let mut accepted: Vec<&str> = Vec::new();
    for rule in rules {
        let words = match rule {
            Rule::factor | Rule::term | Rule::expr => {
                "a number, a quantity such as `goodput_bps(ARM)`, or `(`"
            }
            Rule::add | Rule::subtract | Rule::multiply | Rule::divide => "`+`, `-`, `*` or `/`",
            Rule::order
            | Rule::compare
            | Rule::near
            | Rule::within
            | Rule::trend
            | Rule::flat
            | Rule::peak => "a relation such as `>`",
            Rule::arm => "the name of an arm",
            Rule::selector | Rule::key => "a selector such as `flow=bulk`",
            Rule::number | Rule::value => "a number",
            Rule::EOI => "the end",
            _ => "another word of docs/studies.md",
        };
        if !accepted.contains(&words) {
            accepted.push(words);
        }
    }
    let place = if rest.trim() == text.trim() { String::new() } else { format!(" in `{}`", text.trim()) };
    format!("found {found}{place}, accepted: {}", accepted.join("; "))
}

impl Check {
    /// Parses a check.
    ///
    /// # Errors
    /// A message with the text, the position and what was expected there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pairs = Grammar::parse(Rule::check, text).map_err(|error| refused(text, &error))?;
        let clauses = inner(pairs.next()).filter(|pair| pair.as_rule() == Rule::clause);
        Ok(Self { clauses: clauses.map(clause).collect::<Result<_, _>>()? })
    }
}

impl Expr {
    /// Parses a single expression.
    ///
    /// # Errors
    /// A message with the text, the position and what was expected there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pairs = Grammar::parse(Rule::expr, text).map_err(|error| refused(text, &error))?;
        let pair = pairs.next().ok_or("nothing was found")?;
        if pair.as_str().trim() != text.trim() {
            let (understood, text) = (pair.as_str().trim(), text.trim());
            let found = text.strip_prefix(understood).unwrap_or(text).trim();
            return Err(format!(
                "found `{found}` in `{text}`, accepted: the end, or `+`, `-`, `*` or `/` and another quantity"
            ));
        }
        expr(pair)
    }
}

fn inner(pair: Option<Pair<'_, Rule>>) -> impl Iterator<Item = Pair<'_, Rule>> {
    pair.into_iter().flat_map(Pair::into_inner)
}

/// Returns the next part, whose presence the grammar guarantees.
fn next<'a>(parts: &mut impl Iterator<Item = Pair<'a, Rule>>) -> Result<Pair<'a, Rule>, String> {
    parts.next().ok_or_else(|| "the check ends too early".to_owned())
}

fn clause(pair: Pair<'_, Rule>) -> Result<Clause, String> {
    let mut parts = pair.into_inner();
    let mut part = next(&mut parts)?;
    let mut found = None;
    if part.as_rule() == Rule::place {
        found = Some(place(part)?);
        part = next(&mut parts)?;
    }
    Ok(Clause { place: found, relation: relation(part)? })
}

fn place(pair: Pair<'_, Rule>) -> Result<Place, String> {
    let mut parts = pair.into_inner();
    let axis = next(&mut parts)?.as_str().to_owned();
    let part = next(&mut parts)?;
    let listed = part.as_rule() == Rule::listed;
    let mut parts = part.into_inner();
    let values = if listed {
        Values::Listed(parts.map(|part| number(&part)).collect::<Result<_, _>>()?)
    } else {
        let order = order(&next(&mut parts)?);
        Values::Bounded(order, number(&next(&mut parts)?)?)
    };
    Ok(Place { axis, values })
}

fn relation(pair: Pair<'_, Rule>) -> Result<Relation, String> {
    let mut parts = pair.into_inner();
    let left = expr(next(&mut parts)?)?;
    let part = next(&mut parts)?;
    let (rule, text) = (part.as_rule(), part.as_str());
    let mut parts = part.into_inner();
    Ok(match rule {
        Rule::compare => {
            let order = order(&next(&mut parts)?);
            Relation::Compare(left, order, expr(next(&mut parts)?)?)
        }
        Rule::near => {
            let right = expr(next(&mut parts)?)?;
            Relation::Near(left, right, number(&next(&mut parts)?)?)
        }
        Rule::within => {
            let low = number(&next(&mut parts)?)?;
            Relation::Within(left, low, number(&next(&mut parts)?)?)
        }
        Rule::flat => Relation::Flat(left, number(&next(&mut parts)?)?),
        Rule::peak => Relation::Peaks(left, number(&next(&mut parts)?)?),
        _ if text.trim() == "rises" => Relation::Rises(left),
        _ => Relation::Falls(left),
    })
}

fn order(pair: &Pair<'_, Rule>) -> Order {
    match pair.as_str() {
        ">" => Order::Above,
        "<" => Order::Below,
        ">=" => Order::AtLeast,
        _ => Order::AtMost,
    }
}

fn expr(pair: Pair<'_, Rule>) -> Result<Expr, String> {
    let is_leaf = pair.as_rule() == Rule::factor;
    let mut parts = pair.into_inner();
    let first = next(&mut parts)?;
    if is_leaf {
        return factor(first);
    }
    let mut all = expr(first)?;
    while let Some(sign) = parts.next() {
        let operation = match sign.as_rule() {
            Rule::add => Operation::Add,
            Rule::subtract => Operation::Subtract,
            Rule::multiply => Operation::Multiply,
            _ => Operation::Divide,
        };
        all = Expr::Both(Box::new(all), operation, Box::new(expr(next(&mut parts)?)?));
    }
    Ok(all)
}

fn factor(pair: Pair<'_, Rule>) -> Result<Expr, String> {
    match pair.as_rule() {
        Rule::number => Ok(Expr::Number(number(&pair)?)),
        Rule::quantity => quantity(pair).map(Expr::Quantity),
        Rule::over_axis => {
            let mut parts = pair.into_inner();
            let fold = match next(&mut parts)?.as_str() {
                "highest" => Fold::Highest,
                "lowest" => Fold::Lowest,
                _ => Fold::Average,
            };
            Ok(Expr::OverAxis(fold, Box::new(expr(next(&mut parts)?)?)))
        }
        Rule::of_several => {
            let mut parts = pair.into_inner();
            let several = match next(&mut parts)?.as_str() {
                "max" => Several::Max,
                "min" => Several::Min,
                "log2" => Several::Log2,
                _ => Several::Abs,
            };
            Ok(Expr::OfSeveral(several, parts.map(expr).collect::<Result<_, _>>()?))
        }
        _ => expr(pair),
    }
}

fn quantity(pair: Pair<'_, Rule>) -> Result<Quantity, String> {
    let mut parts = pair.into_inner();
    let metric = next(&mut parts)?.as_str().to_owned();
    let arm = next(&mut parts)?.as_str().to_owned();
    let selector = |pair: Pair<'_, Rule>| {
        let mut parts = pair.into_inner();
        Ok((next(&mut parts)?.as_str().to_owned(), next(&mut parts)?.as_str().to_owned()))
    };
    Ok(Quantity { metric, arm, selectors: parts.map(selector).collect::<Result<_, String>>()? })
}

fn number(pair: &Pair<'_, Rule>) -> Result<f64, String> {
    let text = pair.as_str().trim();
    let (digits, divisor) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    let number: f64 = digits.parse().map_err(|_| format!("`{text}` is no number"))?;
    Ok(number / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_reads_as_a_person_would_say_it() {
        let check = Check::parse(
            "at loss >= 1e-3: goodput(peach) > 1.1 * goodput(reno, group=bulk) and jain(peach) in 0.9..1",
        );
        let check = check.unwrap();
        assert_eq!(check.clauses.len(), 2);
        let place = check.clauses[0].place.clone().unwrap();
        assert_eq!((place.axis.as_str(), place.values), ("loss", Values::Bounded(Order::AtLeast, 1e-3)));
        let Relation::Compare(left, Order::Above, right) = &check.clauses[0].relation else { panic!() };
        assert!(matches!(left, Expr::Quantity(quantity) if quantity.arm == "peach"));
        let Expr::Both(factor, Operation::Multiply, reno) = right else { panic!("{right:?}") };
        assert_eq!(**factor, Expr::Number(1.1));
        assert!(matches!(&**reno, Expr::Quantity(quantity) if quantity.selector("group") == Some("bulk")));
        assert!(
            matches!(check.clauses[1].relation, Relation::Within(_, low, high) if low == 0.9 && high == 1.0)
        );
        assert_eq!(check.quantities().len(), 3);
    }

    #[test]
    fn products_bind_before_sums_and_both_go_from_left_to_right() {
        let Expr::Both(sum, Operation::Subtract, last) = Expr::parse("8 - 2 * 3 - 1").unwrap() else {
            panic!()
        };
        assert_eq!(*last, Expr::Number(1.0));
        assert!(matches!(*sum, Expr::Both(_, Operation::Subtract, product)
            if matches!(*product, Expr::Both(_, Operation::Multiply, _))));
    }

    #[test]
    fn every_relation_has_its_words() {
        let relation = |text: &str| Check::parse(text).unwrap().clauses.remove(0).relation;
        assert!(Check::parse("a(x) ~ b(y)").is_err(), "about equal needs a margin");
        assert!(matches!(relation("a(x) ~ b(y) within 3%"), Relation::Near(.., within) if within == 0.03));
        assert!(matches!(relation("a(x) rises"), Relation::Rises(_)));
        assert!(matches!(relation("a(x) falls"), Relation::Falls(_)));
        assert!(matches!(relation("a(x) is flat within 10%"), Relation::Flat(_, within) if within == 0.1));
        assert!(matches!(
            relation("highest(a(x)) < 620"),
            Relation::Compare(Expr::OverAxis(Fold::Highest, _), ..)
        ));
        assert!(matches!(relation("a(x) peaks at 10"), Relation::Peaks(_, place) if place == 10.0));
        assert!(matches!(relation("max(a(x), 2) <= log2(8)"), Relation::Compare(..)));
    }

    #[test]
    fn mistakes_say_what_was_found_and_what_is_accepted() {
        let error = Check::parse("goodput(peach) is bigger").unwrap_err();
        assert!(error.starts_with("found `is bigger` in `goodput(peach) is bigger`, accepted: "), "{error}");
        assert!(error.contains("a relation such as `>`"), "{error}");
        let error = Expr::parse("goodput(peach) / ").unwrap_err();
        assert!(error.starts_with("found `/` in `goodput(peach) /`, accepted: the end, or `+`"), "{error}");
        assert!(Check::parse("goodput(peach)").is_err());
        assert!(Expr::parse("goodput(peach) / ").is_err());
    }
}
