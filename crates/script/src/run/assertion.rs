//! Assertions about a connection: `assert tcpi_snd_cwnd == 10`.

/// Checks the assertions in `code`; `value` returns the values of names.
pub fn check(code: &str, value: impl Fn(&str) -> Option<f64>) -> Result<(), String> {
    for line in
        code.split(['\n', ';']).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let Some(condition) = line.strip_prefix("assert ") else {
            return Err(format!("found {line:?}, accepted: assert CONDITION"));
        };
        let mut reader = Reader { rest: condition, value: &value };
        let holds = reader.either()?;
        // A second expression is the message that packetdrill would print.
        if !reader.rest.trim_start().is_empty() && !reader.rest.trim_start().starts_with(',') {
            return Err(format!("found {:?}, accepted: an operator or the end", reader.rest.trim()));
        }
        if holds == 0.0 {
            let names: Vec<String> = names(condition)
                .into_iter()
                .filter_map(|name| value(&name).map(|value| format!("{name} is {value}")))
                .collect();
            return Err(format!("{line} does not hold: {}", names.join(", ")));
        }
    }
    Ok(())
}

fn names(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut names: Vec<String> =
        words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).map(str::to_owned).collect();
    names.dedup();
    names
}

struct Reader<'a> {
    rest: &'a str,
    value: &'a dyn Fn(&str) -> Option<f64>,
}

/// Comparison of two numbers.
type Compares = fn(f64, f64) -> bool;

/// Comparison operators, longest first.
const COMPARISONS: &[(&str, Compares)] = &[
    ("==", |a, b| a == b),
    ("!=", |a, b| a != b),
    ("<=", |a, b| a <= b),
    (">=", |a, b| a >= b),
    ("<", |a, b| a < b),
    (">", |a, b| a > b),
];

impl Reader<'_> {
    fn eat(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start();
        let Some(after) = rest.strip_prefix(sign) else { return false };
        let is_word = sign.starts_with(|c: char| c.is_ascii_alphabetic());
        if is_word && after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return false;
        }
        self.rest = after;
        true
    }

    fn either(&mut self) -> Result<f64, String> {
        let mut left = self.both()?;
        while self.eat("or") {
            let right = self.both()?;
            left = f64::from(left != 0.0 || right != 0.0);
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<f64, String> {
        let mut left = self.comparison()?;
        while self.eat("and") {
            let right = self.comparison()?;
            left = f64::from(left != 0.0 && right != 0.0);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<f64, String> {
        if self.eat("not") {
            return Ok(f64::from(self.comparison()? == 0.0));
        }
        let mut left = self.sum()?;
        let (mut holds, mut compared) = (true, false);
        while let Some((_, compares)) = COMPARISONS.iter().find(|(sign, _)| self.eat(sign)) {
            let right = self.sum()?;
            holds &= compares(left, right);
            (left, compared) = (right, true);
        }
        Ok(if compared { f64::from(holds) } else { left })
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut left = self.product()?;
        loop {
            if self.eat("+") {
                left += self.product()?;
            } else if self.eat("-") {
                left -= self.product()?;
            } else {
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut left = self.atom()?;
        loop {
            if self.eat("*") {
                left *= self.atom()?;
            } else if self.eat("//") {
                left = (left / self.atom()?).floor();
            } else if self.eat("/") {
                left /= self.atom()?;
            } else {
                return Ok(left);
            }
        }
    }

    fn atom(&mut self) -> Result<f64, String> {
        if self.eat("(") {
            let inner = self.either()?;
            return if self.eat(")") {
                Ok(inner)
            } else {
                Err(format!("found {:?}, accepted: \")\"", self.rest))
            };
        }
        let rest = self.rest.trim_start();
        let len =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
        let (word, after) = rest.split_at(len);
        self.rest = after;
        match word.parse::<f64>() {
            Ok(number) => Ok(number),
            Err(_) => (self.value)(word)
                .ok_or_else(|| format!("found {word:?}, accepted: a number or {}", super::NAMES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(code: &str) -> Result<(), String> {
        check(code, |name| (name == "tcpi_snd_cwnd").then_some(10.0))
    }

    #[test]
    fn conditions_are_read_as_python_reads_them() {
        for code in [
            " assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd ",
            "assert 2 + 3 * 4 == 14 and not 1 > 2",
            "assert 1 < 2 <= 2\nassert (tcpi_snd_cwnd - 1) // 2 == 4 or 0",
        ] {
            assert_eq!(holds(code), Ok(()), "{code}");
        }
        assert_eq!(
            holds("assert tcpi_snd_cwnd > 10").unwrap_err(),
            "assert tcpi_snd_cwnd > 10 does not hold: tcpi_snd_cwnd is 10"
        );
        assert!(holds("assert tcpi_rtt == 1").unwrap_err().starts_with("found \"tcpi_rtt\""));
        assert!(holds("print(1)").is_err() && holds("assert (1").is_err() && holds("assert 1 2").is_err());
    }
}
