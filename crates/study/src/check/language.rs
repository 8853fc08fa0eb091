//! Syntax tree of a check.

/// Content of a claim: every clause must hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Check<Q = Quantity> {
    /// Clauses joined by `and`.
    pub clauses: Vec<Clause<Q>>,
}

/// A relation, and the part of the axis where it must hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Clause<Q = Quantity> {
    /// Part of the axis; the whole axis if absent.
    pub place: Option<Place>,
    /// Relation that must hold there.
    pub relation: Relation<Q>,
}

/// A part of the horizontal axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Name of the axis.
    pub axis: String,
    /// Selected values of the axis.
    pub values: Values,
}

/// A selection of axis values.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// The listed values.
    Listed(Vec<f64>),
    /// The values on one side of a bound.
    Bounded(Order, f64),
}

impl Values {
    /// Returns the listed values.
    pub fn listed(&self) -> &[f64] {
        match self {
            Self::Listed(listed) => listed,
            Self::Bounded(..) => &[],
        }
    }

    /// True if `value` is selected. A listed value matches within 1e-6, because it was written in decimals.
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

/// True if two numbers are equal except for rounding.
pub fn alike(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
}

/// A comparison operator.
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
    /// Sign of the difference that satisfies it: 1 or -1.
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

/// A relation that must hold.
#[derive(Clone, PartialEq, Debug)]
pub enum Relation<Q = Quantity> {
    /// One side is larger than the other.
    Compare(Expr<Q>, Order, Expr<Q>),
    /// Both sides are equal within this fraction of the second.
    Near(Expr<Q>, Expr<Q>, f64),
    /// The value lies between two numbers, both included.
    Within(Expr<Q>, f64, f64),
    /// The value grows along the axis.
    Rises(Expr<Q>),
    /// The value shrinks along the axis.
    Falls(Expr<Q>),
    /// Maximum and minimum along the axis differ by at most this fraction of the maximum.
    Flat(Expr<Q>, f64),
    /// The value has its maximum at this value of the axis.
    Peaks(Expr<Q>, f64),
}

/// A value for each place and seed. `Q` is a quantity, either as written or as resolved by an experiment.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr<Q = Quantity> {
    /// A constant.
    Number(f64),
    /// A measured quantity.
    Quantity(Q),
    /// Arithmetic on two values.
    Both(Box<Expr<Q>>, Operation, Box<Expr<Q>>),
    /// A summary of all values along the axis.
    OverAxis(Fold, Box<Expr<Q>>),
    /// A function of several values.
    OfSeveral(Several, Vec<Expr<Q>>),
}

/// Arithmetic operations.
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

/// Summaries of all values along the axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Largest.
    Highest,
    /// Smallest.
    Lowest,
    /// Arithmetic mean.
    Average,
}

/// Functions of several values at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Several {
    /// Largest.
    Max,
    /// Smallest.
    Min,
    /// Logarithm to base 2 of one value.
    Log2,
    /// Magnitude of one value.
    Abs,
}

/// A quantity measured in the runs of an arm.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantity {
    /// Name of the metric.
    pub metric: String,
    /// Name of the arm.
    pub arm: String,
    /// Selectors: part of the world, time, or place on the axis.
    pub selectors: Vec<(String, String)>,
}

impl Quantity {
    /// Returns the value of a selector.
    pub fn selector(&self, key: &str) -> Option<&str> {
        self.selectors.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

impl Check {
    /// Returns the check with every quantity translated.
    ///
    /// # Errors
    /// The first error of `translate`.
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
    /// Returns all quantities in the check.
    pub fn quantities(&self) -> Vec<&Q> {
        let mut found = Vec::new();
        for clause in &self.clauses {
            clause.relation.sides().for_each(|side| side.visit(&mut |quantity| found.push(quantity)));
        }
        found
    }
}

impl<Q> Relation<Q> {
    /// Returns the expressions in the relation.
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
    /// Returns the expression with every quantity translated.
    ///
    /// # Errors
    /// The first error of `translate`.
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
    /// Returns the arguments if this is `max` or `min`, or a positive multiple of it; else the expression itself.
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
    /// Calls `see` for every quantity in the expression.
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
