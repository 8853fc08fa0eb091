//! From the text of a check to its parts.

use pest::Parser;
use pest::error::{Error as PestError, ErrorVariant, LineColLocation};
use pest::iterators::Pair;

#[derive(pest_derive::Parser)]
#[grammar = "check/check.pest"]
struct Grammar;

/// Where a text stops to be a check, and what may stand there.
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

/// What a claim says: every clause must hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Check<Q = Quantity> {
    /// Joined by `and`.
    pub clauses: Vec<Clause<Q>>,
}

/// A relation, and where along the axis it is looked at.
#[derive(Clone, PartialEq, Debug)]
pub struct Clause<Q = Quantity> {
    /// Everywhere without this.
    pub place: Option<Place>,
    /// What must be so there.
    pub relation: Relation<Q>,
}

/// Part of the horizontal axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Name of the axis.
    pub axis: String,
    /// Which of its values.
    pub values: Values,
}

/// Which values of an axis.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// These.
    Listed(Vec<f64>),
    /// Those on one side of a bound.
    Bounded(Order, f64),
}

impl Values {
    /// Those that are listed.
    pub fn listed(&self) -> &[f64] {
        match self {
            Self::Listed(listed) => listed,
            Self::Bounded(..) => &[],
        }
    }

    /// Whether `value` is one of them. A listed value is met within a millionth, because it was written in decimals.
    pub fn hold(&self, value: f64) -> bool {
        match self {
            Self::Listed(listed) => listed.iter().any(|one| alike(*one, value)),
            Self::Bounded(order, bound) => match order {
                Order::Above => value > *bound && !alike(value, *bound),
                Order::Below => value < *bound && !alike(value, *bound),
                Order::AtLeast => value >= *bound || alike(value, *bound),
                Order::AtMost => value <= *bound || alike(value, *bound),
            },
        }
    }
}

/// Equal but for rounding.
pub fn alike(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
}

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// `>`.
    Above,
    /// `<`.
    Below,
    /// `>=`.
    AtLeast,
    /// `<=`.
    AtMost,
}

impl Order {
    /// Of the difference that it wants: 1 or -1.
    pub fn sign(self) -> f64 {
        match self {
            Self::Above | Self::AtLeast => 1.0,
            Self::Below | Self::AtMost => -1.0,
        }
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Above => ">",
            Self::Below => "<",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        })
    }
}

/// What must be so.
#[derive(Clone, PartialEq, Debug)]
pub enum Relation<Q = Quantity> {
    /// One side is larger.
    Compare(Expr<Q>, Order, Expr<Q>),
    /// Both are equal within this part of the second.
    Near(Expr<Q>, Expr<Q>, f64),
    /// Between two numbers, both included.
    Within(Expr<Q>, f64, f64),
    /// Grows along the axis.
    Rises(Expr<Q>),
    /// Shrinks along the axis.
    Falls(Expr<Q>),
    /// The largest and the smallest value along the axis differ by no more than this part of the largest.
    Flat(Expr<Q>, f64),
    /// Is largest at this value of the axis.
    Peaks(Expr<Q>, f64),
}

/// A value at each place and seed; `Q` is what is measured: as it was written, or as an experiment understands it.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr<Q = Quantity> {
    /// The same everywhere.
    Number(f64),
    /// Measured.
    Quantity(Q),
    /// Of two values.
    Both(Box<Expr<Q>>, Operation, Box<Expr<Q>>),
    /// Of all values along the axis.
    OverAxis(Fold, Box<Expr<Q>>),
    /// Of several values.
    OfSeveral(Several, Vec<Expr<Q>>),
}

/// Arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient.
    Divide,
}

/// Of all values along the axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Largest.
    Highest,
    /// Smallest.
    Lowest,
    /// Arithmetic mean.
    Average,
}

/// Of several values at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Several {
    /// Largest.
    Max,
    /// Smallest.
    Min,
    /// Logarithm to the base 2, of one value.
    Log2,
    /// Magnitude, of one value.
    Abs,
}

/// Something measured in the runs of an arm.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantity {
    /// Name of what is measured.
    pub metric: String,
    /// In whose runs.
    pub arm: String,
    /// Which part of the world, when, or where along the axis.
    pub selectors: Vec<(String, String)>,
}

impl Quantity {
    /// The value of a selector.
    pub fn selector(&self, key: &str) -> Option<&str> {
        self.selectors.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

impl Check {
    /// Reads a check.
    ///
    /// # Errors
    /// What was expected and where, with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pairs = Grammar::parse(Rule::check, text).map_err(|error| refused(text, &error))?;
        let clauses = inner(pairs.next()).filter(|pair| pair.as_rule() == Rule::clause);
        Ok(Self { clauses: clauses.map(clause).collect::<Result<_, _>>()? })
    }

    /// The same check with every quantity translated.
    ///
    /// # Errors
    /// The first of `translate`.
    pub fn translated<R>(
        &self,
        translate: &mut impl FnMut(&Quantity) -> Result<R, String>,
    ) -> Result<Check<R>, String> {
        let clause = |clause: &Clause| {
            Ok(Clause { place: clause.place.clone(), relation: clause.relation.translated(translate)? })
        };
        Ok(Check { clauses: self.clauses.iter().map(clause).collect::<Result<_, String>>()? })
    }
}

impl<Q> Check<Q> {
    /// All quantities in it.
    pub fn quantities(&self) -> Vec<&Q> {
        let mut found = Vec::new();
        for clause in &self.clauses {
            clause.relation.sides().for_each(|side| side.visit(&mut |quantity| found.push(quantity)));
        }
        found
    }
}

impl<Q> Relation<Q> {
    /// The expressions in it.
    pub fn sides(&self) -> impl Iterator<Item = &Expr<Q>> {
        let (one, other) = match self {
            Self::Compare(a, _, b) | Self::Near(a, b, _) => (a, Some(b)),
            Self::Within(a, ..) | Self::Rises(a) | Self::Falls(a) | Self::Flat(a, _) | Self::Peaks(a, _) => {
                (a, None)
            }
        };
        std::iter::once(one).chain(other)
    }
}

impl Relation {
    fn translated<R>(
        &self,
        translate: &mut impl FnMut(&Quantity) -> Result<R, String>,
    ) -> Result<Relation<R>, String> {
        let mut of = |expr: &Expr| expr.translated(translate);
        Ok(match self {
            Self::Compare(a, order, b) => Relation::Compare(of(a)?, *order, of(b)?),
            Self::Near(a, b, within) => Relation::Near(of(a)?, of(b)?, *within),
            Self::Within(a, low, high) => Relation::Within(of(a)?, *low, *high),
            Self::Rises(a) => Relation::Rises(of(a)?),
            Self::Falls(a) => Relation::Falls(of(a)?),
            Self::Flat(a, within) => Relation::Flat(of(a)?, *within),
            Self::Peaks(a, at) => Relation::Peaks(of(a)?, *at),
        })
    }
}

impl Expr {
    /// Reads an expression alone.
    ///
    /// # Errors
    /// What was expected and where, with the text.
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

    /// The same expression with every quantity translated.
    ///
    /// # Errors
    /// The first of `translate`.
    pub fn translated<R>(
        &self,
        translate: &mut impl FnMut(&Quantity) -> Result<R, String>,
    ) -> Result<Expr<R>, String> {
        Ok(match self {
            Self::Number(number) => Expr::Number(*number),
            Self::Quantity(quantity) => Expr::Quantity(translate(quantity)?),
            Self::Both(a, operation, b) => {
                Expr::Both(Box::new(a.translated(translate)?), *operation, Box::new(b.translated(translate)?))
            }
            Self::OverAxis(fold, a) => Expr::OverAxis(*fold, Box::new(a.translated(translate)?)),
            Self::OfSeveral(several, all) => {
                let all = all.iter().map(|one| one.translated(translate));
                Expr::OfSeveral(*several, all.collect::<Result<_, _>>()?)
            }
        })
    }
}

impl<Q: Clone> Expr<Q> {
    /// The expressions of which this is the `max` or `min`, or a positive multiple of it; else itself.
    pub fn each_of(&self, several: Several) -> Vec<Self> {
        match self {
            Self::OfSeveral(which, all) if *which == several => {
                all.iter().flat_map(|one| one.each_of(several)).collect()
            }
            Self::Both(factor, Operation::Multiply, of) if matches!(**factor, Self::Number(n) if n > 0.0) => {
                let times = |one: Self| Self::Both(factor.clone(), Operation::Multiply, Box::new(one));
                of.each_of(several).into_iter().map(times).collect()
            }
            _ => vec![self.clone()],
        }
    }
}

impl<Q> Expr<Q> {
    /// Shows every quantity in it to `see`.
    pub fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Q)) {
        match self {
            Self::Number(_) => {}
            Self::Quantity(quantity) => see(quantity),
            Self::Both(a, _, b) => {
                a.visit(see);
                b.visit(see);
            }
            Self::OverAxis(_, a) => a.visit(see),
            Self::OfSeveral(_, all) => all.iter().for_each(|one| one.visit(see)),
        }
    }
}

fn inner(pair: Option<Pair<'_, Rule>>) -> impl Iterator<Item = Pair<'_, Rule>> {
    pair.into_iter().flat_map(Pair::into_inner)
}

/// The next part; the grammar promises it.
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
