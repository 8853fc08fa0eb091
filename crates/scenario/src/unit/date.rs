//! Dates.

use std::time::{SystemTime, UNIX_EPOCH};

use bentpipe_base::Duration;

use super::{Codec, Refused};
use crate::tree::Value;

/// Codec of a date in RFC 3339, as the time since the beginning of 1970.
pub(crate) struct Date;

/// Returns the time since the beginning of 1970 of a date in RFC 3339. The zone may be missing and then is UTC; a space may
/// replace the T.
pub(crate) fn since_1970(text: &str) -> Option<Duration> {
    let begin = text.len().checked_sub(6)?;
    let offset = text.get(begin..).filter(|zone| zone.starts_with(['+', '-']) && text.len() > 16);
    let (date, offset_s) = match offset {
        Some(zone) => (&text[..begin], offset_s(zone)?),
        None => (text, 0),
    };
    let date = humantime::parse_rfc3339_weak(date).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let seconds = i64::try_from(date.as_secs()).ok()?.checked_sub(offset_s)?;
    let whole = Duration::from_secs(u64::try_from(seconds).ok()?);
    Some(whole + Duration::from_nanos(u64::from(date.subsec_nanos())))
}

/// Returns the seconds by which a zone such as `+05:30` is ahead of UTC.
fn offset_s(zone: &str) -> Option<i64> {
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let number = |digits: &str| digits.parse::<u8>().ok().filter(|_| digits.len() == 2).map(i64::from);
    let ahead = number(hours).filter(|hours| *hours < 24)? * 3600 + number(minutes).filter(|m| *m < 60)? * 60;
    Some(if zone.starts_with('-') { -ahead } else { ahead })
}

impl Codec<Duration> for Date {
    fn read(&self, value: &Value) -> Result<Duration, Refused> {
        match value {
            Value::Text(text) => since_1970(text).ok_or_else(Refused::default),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &Duration) -> Value {
        let date: SystemTime = UNIX_EPOCH + std::time::Duration::from_nanos(typed.as_nanos());
        Value::Text(humantime::format_rfc3339(date).to_string())
    }
    fn accepted(&self) -> String {
        "a date since 1970 such as \"2026-11-28T12:00:00Z\"".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_a_zone_or_are_in_utc() {
        let millis = |text: &str| since_1970(text).map(|date| date.as_nanos() / 1_000_000);
        for (text, expected) in [
            ("2026-11-28T12:00:00Z", 1_795_867_200_000),
            ("2026-11-28 12:00:00", 1_795_867_200_000),
            ("2026-11-28T12:00:00.5", 1_795_867_200_500),
            ("2026-11-28T12:00:00.25+00:00", 1_795_867_200_250),
            ("2026-11-28T12:00:00+05:30", 1_795_847_400_000),
            ("2026-11-28T12:00:00-08:00", 1_795_896_000_000),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "noon",
            "12:00:00",
            "2026-13-01T00:00:00Z",
            "2026-11-28T12:00:00+25:00",
            "1960-01-01T00:00:00Z",
        ] {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_reads_back_as_it_is_shown() {
        let date = Duration::from_secs(1_795_867_200);
        assert_eq!(Date.show(&date), Value::Text("2026-11-28T12:00:00Z".to_owned()));
        assert_eq!(Date.read(&Date.show(&date)), Ok(date));
    }
}
