//! Tokens of a script.

use std::fmt;

use crate::Mistake;

/// Token of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// Decimal or `0x` number.
    Integer(u64),
    /// Number with a fraction; seconds stored in nanoseconds.
    Fraction(u64),
    /// Name.
    Word(String),
    /// Text in quotes.
    Text(String),
    /// Command in backquotes.
    Command(String),
    /// Assertions between `%{` and `}%`.
    Code(String),
    /// A line `--name=value`.
    Setting(String, String),
    /// `...`
    Ellipsis,
    /// Any other character.
    Sign(char),
    /// End of the script.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Fraction(nanos) => write!(f, "{}", *nanos as f64 / 1e9),
            Self::Word(word) => write!(f, "{word:?}"),
            Self::Text(text) => write!(f, "the text {text:?}"),
            Self::Command(command) => write!(f, "the command `{command}`"),
            Self::Code(_) => f.write_str("%{"),
            Self::Setting(name, _) => write!(f, "--{name}"),
            Self::Ellipsis => f.write_str("\"...\""),
            Self::Sign(sign) => write!(f, "{sign:?}"),
            Self::End => f.write_str("the end of the file"),
        }
    }
}

/// Maximum size of a script in bytes.
const LONGEST: usize = 1 << 20;

/// Splits a script into tokens, each with its line.
pub(crate) fn tokens(file: &str, text: &str) -> Result<Vec<(u32, Token)>, Mistake> {
    let mut lexer = Lexer { file, rest: text, line: 1 };
    if text.len() > LONGEST {
        return Err(lexer.mistake(format!("{} bytes", text.len()), "at most a mebibyte"));
    }
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank()?;
        let line = lexer.line;
        let token = lexer.next()?;
        let ended = token == Token::End;
        tokens.push((line, token));
        if ended {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    file: &'a str,
    rest: &'a str,
    line: u32,
}

impl<'a> Lexer<'a> {
    fn mistake(&self, found: impl Into<String>, accepted: &str) -> Mistake {
        let (file, line) = (self.file.to_owned(), self.line);
        Mistake { file, line, found: found.into(), accepted: accepted.to_owned() }
    }

    /// Consumes `len` bytes.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.matches('\n').count() as u32;
        self.rest = rest;
        taken
    }

    /// Consumes the text before `end`, and `end` itself.
    fn take_until(&mut self, end: &str) -> Result<&'a str, Mistake> {
        let Some(len) = self.rest.find(end) else {
            return Err(self.mistake("no end", &format!("{end:?} somewhere below")));
        };
        let taken = self.take(len);
        self.take(end.len());
        Ok(taken)
    }

    fn line_len(&self) -> usize {
        self.rest.find('\n').unwrap_or(self.rest.len())
    }

    fn skip_blank(&mut self) -> Result<(), Mistake> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            if self.rest.starts_with('#') || self.rest.starts_with("//") {
                self.take(self.line_len());
            } else if self.rest.starts_with("/*") {
                self.take_until("*/")?;
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Token, Mistake> {
        let mut chars = self.rest.chars();
        let (Some(first), second) = (chars.next(), chars.next()) else { return Ok(Token::End) };
        if self.rest.starts_with("...") {
            self.take(3);
            return Ok(Token::Ellipsis);
        }
        if self.rest.starts_with("%{") {
            self.take(2);
            return Ok(Token::Code(self.take_until("}%")?.to_owned()));
        }
        if self.rest.starts_with("--") {
            return self.setting();
        }
        match first {
            '"' => {
                self.take(1);
                Ok(Token::Text(self.take_until("\"")?.to_owned()))
            }
            '`' => {
                self.take(1);
                Ok(Token::Command(self.take_until("`")?.trim().to_owned()))
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|second| second.is_ascii_digit()) => self.number(),
            'a'..='z' | 'A'..='Z' | '_' => {
                let ends = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                let len = self.rest.find(ends).unwrap_or(self.rest.len());
                Ok(Token::Word(self.take(len).to_owned()))
            }
            sign => {
                self.take(sign.len_utf8());
                Ok(Token::Sign(sign))
            }
        }
    }

    fn setting(&mut self) -> Result<Token, Mistake> {
        let line = self.rest[..self.line_len()].split(" #").next().unwrap_or_default().trim_end();
        let Some((name, value)) = line[2..].split_once('=') else {
            return Err(self.mistake(line, "--name=value"));
        };
        self.take(line.len());
        Ok(Token::Setting(name.trim().to_owned(), value.trim().to_owned()))
    }

    fn number(&mut self) -> Result<Token, Mistake> {
        let digits = |text: &str, radix| text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
        if self.rest.starts_with("0x") {
            let len = 2 + digits(&self.rest[2..], 16);
            let text = self.take(len);
            let number = u64::from_str_radix(&text[2..], 16);
            return number.map(Token::Integer).map_err(|_| self.mistake(text, "at most 64 bits"));
        }
        let len = digits(self.rest, 10);
        let whole = self.take(len);
        let number: u64 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| self.mistake(whole, "at most 64 bits"))?
        };
        let fraction =
            self.rest.strip_prefix('.').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let Some(fraction) = fraction else { return Ok(Token::Integer(number)) };
        let len = digits(fraction, 10);
        let text = self.take(len + 1);
        let nanos = format!("{:0<9.9}", &text[1..]).parse::<u64>().unwrap_or_default();
        let number = number.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(nanos));
        number.map(Token::Fraction).ok_or_else(|| self.mistake(whole, "at most 500 years"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Token> {
        tokens("x.pkt", text).unwrap().into_iter().map(|(_, token)| token).collect()
    }

    #[test]
    fn numbers_dots_and_ellipses_are_told_apart() {
        let wanted = [
            Token::Sign('+'),
            Token::Fraction(100_000_000),
            Token::Ellipsis,
            Token::Fraction(1_250_000_000),
            Token::Word("P".into()),
            Token::Sign('.'),
            Token::Integer(1),
            Token::Ellipsis,
            Token::Integer(255),
            Token::End,
        ];
        assert_eq!(read("+.1...1.25 P. 1...0xff"), wanted);
    }

    #[test]
    fn comments_are_skipped_and_lines_counted() {
        let all = tokens("x.pkt", "# one\n/* two\nthree */ // rest\n--ecn=true  # yes\n< ").unwrap();
        assert_eq!(all[0], (4, Token::Setting("ecn".into(), "true".into())));
        assert_eq!(all[1], (5, Token::Sign('<')));
    }

    #[test]
    fn what_does_not_end_is_named() {
        let error = tokens("x.pkt", "\n`true").unwrap_err();
        assert_eq!(error.to_string(), "x.pkt:2: found no end, accepted: \"`\" somewhere below");
    }
}
