//! Calls of the application.

use super::Parser;
use crate::Mistake;
use crate::lexer::Token;
use crate::script::{Call, Errno, Outcome, Value};

/// Maximum nesting depth of lists.
const DEEPEST: usize = 8;

impl Parser<'_> {
    /// Parses `accept(3, ..., ...) = 4`, with `...0.2` before it if it waits.
    pub(super) fn call(&mut self) -> Result<Call, Mistake> {
        let returns = if *self.peek() == Token::Ellipsis {
            self.next();
            Some(self.seconds()?)
        } else {
            None
        };
        let name = self.word("the name of a call")?;
        self.expect('(')?;
        let mut arguments = Vec::new();
        while !self.eat(')') {
            arguments.push(self.value(DEEPEST)?);
            if *self.peek() != Token::Sign(')') {
                self.expect(',')?;
            }
        }
        self.expect('=')?;
        let outcome = self.outcome()?;
        self.note();
        Ok(Call { returns, name, arguments, outcome })
    }

    fn outcome(&mut self) -> Result<Outcome, Mistake> {
        if *self.peek() == Token::Ellipsis {
            self.next();
            return Ok(Outcome::Any);
        }
        let negative = self.eat('-');
        let number = self.integer(i64::MAX as u64, "what the call returns, or \"...\",")? as i64;
        match self.peek().clone() {
            Token::Word(errno) if negative => {
                self.next();
                Ok(Outcome::Error(Errno(errno)))
            }
            _ if negative => Err(self.unexpected("the name of an error, such as EAGAIN")),
            _ => Ok(Outcome::Number(number)),
        }
    }

    /// Skips the C library's error message in parentheses, which is not compared.
    fn note(&mut self) {
        if *self.peek() == Token::Sign('(') {
            while !matches!(self.next(), Token::Sign(')') | Token::End) {}
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Mistake> {
        const ACCEPTED: &str = "a number, a name, a text, a list or \"...\"";
        let close = match self.peek().clone() {
            Token::Ellipsis => {
                self.next();
                return Ok(Value::Any);
            }
            Token::Text(text) => {
                self.next();
                return Ok(Value::Text(text));
            }
            Token::Integer(number) => {
                self.next();
                return Ok(Value::Number(number as i64));
            }
            Token::Sign('-') => {
                self.next();
                return Ok(Value::Number(-(self.integer(i64::MAX as u64, "a number")? as i64)));
            }
            Token::Word(_) => return self.words(depth),
            Token::Sign('[') if depth > 0 => ']',
            Token::Sign('{') if depth > 0 => '}',
            _ => return Err(self.unexpected(ACCEPTED)),
        };
        self.next();
        let mut list = Vec::new();
        while !self.eat(close) {
            list.push(self.value(depth - 1)?);
            if *self.peek() != Token::Sign(close) {
                self.expect(',')?;
            }
        }
        Ok(Value::List(list))
    }

    fn words(&mut self, depth: usize) -> Result<Value, Mistake> {
        let mut words = vec![self.word("a name")?];
        while self.eat('|') {
            words.push(self.word("a name")?);
        }
        // htons(8080), inet_addr("192.0.2.1")
        if *self.peek() == Token::Sign('(') && depth > 0 {
            self.next();
            let inner = self.value(depth - 1)?;
            self.expect(')')?;
            return Ok(inner);
        }
        if self.eat('=') {
            if depth == 0 {
                return Err(self.unexpected("less nesting"));
            }
            return Ok(Value::Named(words.concat(), Box::new(self.value(depth - 1)?)));
        }
        Ok(Value::Words(words))
    }
}
