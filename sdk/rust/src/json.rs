// SPDX-License-Identifier: Apache-2.0
//! Values of JSON. Numbers keep their text, so that none loses digits on its way through.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::{Duration, SystemTime};

use crate::Error;

const DEPTH_MAX: usize = 1000;

pub type Map = BTreeMap<String, Value>;

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(String),
    String(String),
    List(Vec<Value>),
    Object(Map),
}

static NULL: Value = Value::Null;

/// A value of JSON: `json!({"name": name, "sizes": [1, (2 + 3)], "labels": labels})`. A value is a literal, a name, a list, an
/// object, or any other expression in parentheses; likewise a key.
#[macro_export]
macro_rules! json {
    (null) => { $crate::Value::Null };
    ([ $($entry:tt),* $(,)? ]) => { $crate::Value::List(vec![ $($crate::json!($entry)),* ]) };
    ({ $($key:tt : $value:tt),* $(,)? }) => {
        $crate::Value::Object([ $((String::from($key), $crate::json!($value))),* ].into_iter().collect())
    };
    ($other:expr) => { $crate::Value::from($other) };
}

impl Value {
    /// The member of an object; null if there is none.
    pub fn get(&self, key: &str) -> &Value {
        match self {
            Value::Object(map) => map.get(key).unwrap_or(&NULL),
            _ => &NULL,
        }
    }

    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// None also for 1e21 and 101.0; to check what somebody wrote into a spec, use `integer`.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The integer; or a permanent error with the name (`spec.size`): it is missing, is none, or needs more than 64 bits.
    pub fn integer(&self, name: &str) -> Result<i64, Error> {
        self.as_i64().ok_or_else(|| Error::permanent(format!("{} is not an integer in range", name)))
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The entries of a list; of anything else there are none.
    pub fn as_list(&self) -> &[Value] {
        match self {
            Value::List(list) => list,
            _ => &[],
        }
    }

    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Reads a text that is one value; the error says what is wrong, and where.
    pub fn parse(text: &str) -> Result<Value, String> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        parser
            .value()
            .and_then(|value| {
                parser.skip_space();
                if parser.at == text.len() {
                    Ok(value)
                } else {
                    Err("there is more behind the value")
                }
            })
            .map_err(|why| format!("{}, at byte {}", why, parser.at))
    }
}

pub(crate) fn put<T: Into<Value>>(map: &mut Map, key: &str, value: Option<T>) {
    if let Some(value) = value {
        map.insert(key.to_string(), value.into());
    }
}

// ---- from values of Rust

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(value.to_string())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::String(value)
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Value {
        Value::String(value.clone())
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Value {
        value.clone()
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        assert!(value.is_finite(), "a number of JSON is finite, and not {}", value);
        Value::Number(value.to_string())
    }
}

/// As requeueAfter and retryAfter want it, in milliseconds.
impl From<Duration> for Value {
    fn from(value: Duration) -> Value {
        Value::String(format!("{}ms", value.as_millis()))
    }
}

/// As requeueAt wants it: RFC 3339, in UTC, in milliseconds. What is before 1970 has passed, and so has 1970; what is after 9999 will not come.
impl From<SystemTime> for Value {
    fn from(value: SystemTime) -> Value {
        const LAST: u64 = 253_402_300_799; // 9999-12-31T23:59:59Z
        let since = value.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (seconds, millis) = if since.as_secs() > LAST { (LAST, 0) } else { (since.as_secs(), since.subsec_millis()) };
        let (year, month, day) = date_of(seconds / 86400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        Value::String(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
    }
}

/// Of a day since 1970: years begin in March here, so that the leap day is the last one of its year.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(value: Vec<T>) -> Value {
        Value::List(value.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

macro_rules! from_integers {
    ($($name:ty)*) => { $(impl From<$name> for Value {
        fn from(value: $name) -> Value {
            Value::Number(value.to_string())
        }
    })* };
}

from_integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

// ---- writing text

fn write_string(to: &mut fmt::Formatter, text: &str) -> fmt::Result {
    to.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(to, "\\{}", c)?,
            '\0'..='\x1f' => write!(to, "\\u{:04x}", c as u32)?,
            _ => to.write_char(c)?,
        }
    }
    to.write_char('"')
}

impl fmt::Display for Value {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Null => to.write_str("null"),
            Value::Bool(truth) => write!(to, "{}", truth),
            Value::Number(text) => to.write_str(text),
            Value::String(text) => write_string(to, text),
            Value::List(list) => {
                for (number, entry) in list.iter().enumerate() {
                    write!(to, "{}{}", if number == 0 { "[" } else { "," }, entry)?;
                }
                to.write_str(if list.is_empty() { "[]" } else { "]" })
            }
            Value::Object(map) => {
                for (number, (key, value)) in map.iter().enumerate() {
                    to.write_char(if number == 0 { '{' } else { ',' })?;
                    write_string(to, key)?;
                    write!(to, ":{}", value)?;
                }
                to.write_str(if map.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

// ---- reading text

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, &'static str>;

impl Parser<'_> {
    fn look(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    fn skip(&mut self, wanted: fn(u8) -> bool) -> bool {
        let before = self.at;
        while self.look().map_or(false, wanted) {
            self.at += 1;
        }
        self.at > before
    }

    fn skip_space(&mut self) {
        self.skip(|c| matches!(c, b' ' | b'\t' | b'\r' | b'\n'));
    }

    fn value(&mut self) -> Parsed<Value> {
        self.skip_space();
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("it is nested too deeply");
        }
        let value = match self.look() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.list()?,
            Some(b'"') => Value::String(self.string()?),
            _ if self.take("null") => Value::Null,
            _ if self.take("true") => Value::Bool(true),
            _ if self.take("false") => Value::Bool(false),
            _ => self.number()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Parsed<Value> {
        let mut map = Map::new();
        self.at += 1;
        self.skip_space();
        if self.take("}") {
            return Ok(Value::Object(map));
        }
        loop {
            self.skip_space();
            if self.look() != Some(b'"') {
                return Err("a key is missing");
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(":") {
                return Err("a colon is missing");
            }
            let value = self.value()?;
            map.insert(key, value);
            self.skip_space();
            if self.take("}") {
                return Ok(Value::Object(map));
            }
            if !self.take(",") {
                return Err("a comma or the end is missing");
            }
        }
    }

    fn list(&mut self) -> Parsed<Value> {
        let mut list = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.take("]") {
            return Ok(Value::List(list));
        }
        loop {
            list.push(self.value()?);
            self.skip_space();
            if self.take("]") {
                return Ok(Value::List(list));
            }
            if !self.take(",") {
                return Err("a comma or the end is missing");
            }
        }
    }

    fn number(&mut self) -> Parsed<Value> {
        let start = self.at;
        self.take("-");
        if !self.take("0") && !self.skip(|c| c.is_ascii_digit()) {
            return Err("no value");
        }
        if self.take(".") && !self.skip(|c| c.is_ascii_digit()) {
            return Err("digits are missing");
        }
        if self.take("e") || self.take("E") {
            let _ = self.take("-") || self.take("+");
            if !self.skip(|c| c.is_ascii_digit()) {
                return Err("digits are missing");
            }
        }
        Ok(Value::Number(self.text[start..self.at].to_string()))
    }

    fn string(&mut self) -> Parsed<String> {
        let mut text = String::new();
        self.at += 1;
        loop {
            let start = self.at;
            self.skip(|c| c >= 0x20 && c != b'"' && c != b'\\');
            text.push_str(&self.text[start..self.at]);
            if self.take("\"") {
                return Ok(text);
            }
            if !self.take("\\") {
                return Err(self.look().map_or("the string does not end", |_| "a control character in a string"));
            }
            let escape = self.look().ok_or("the string does not end")?;
            self.at += 1;
            text.push(match escape {
                b'"' | b'\\' | b'/' => escape as char,
                b'b' => '\x08',
                b'f' => '\x0c',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.unicode()?,
                _ => {
                    self.at -= 1;
                    return Err("there is no such escape");
                }
            });
        }
    }

    fn hex(&mut self) -> Parsed<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or("\\u needs four hexadecimal digits")?;
        let mut code = 0;
        for digit in digits {
            code = code * 16 + (*digit as char).to_digit(16).ok_or("\\u needs four hexadecimal digits")?;
        }
        self.at += 4;
        Ok(code)
    }

    /// Behind \u. Half of a pair becomes U+FFFD.
    fn unicode(&mut self) -> Parsed<char> {
        let high = self.hex()?;
        let behind = self.at;
        if (0xd800..0xdc00).contains(&high) && self.take("\\u") {
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            self.at = behind;
        }
        Ok(char::from_u32(high).unwrap_or('\u{fffd}'))
    }
}
