//! The parts of a check.

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
