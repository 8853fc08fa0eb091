/// Returns the known word nearest to the typed one, if the distance is small enough.
pub fn did_you_mean<'a, S: AsRef<str>>(typed: &str, known: &'a [S]) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let nearness = |word: &str| {
        let word = word.to_lowercase();
        let begins = word.len() > typed.len() && typed.len() >= 3 && word.starts_with(&typed);
        if begins { 1.0 } else { strsim::normalized_damerau_levenshtein(&typed, &word) }
    };
    known
        .iter()
        .map(|word| (nearness(word.as_ref()), word.as_ref()))
        .filter(|(near, _)| *near >= 0.5)
        // The first of equally near words wins, so that the result does not depend on iteration
        // order.
        .fold(None, |best: Option<(f64, &str)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        })
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["delay-one-way", "rate", "queue", "reverse"];
        assert_eq!(did_you_mean("delay", &known), Some("delay-one-way"));
        assert_eq!(did_you_mean("qeue", &known), Some("queue"));
        assert_eq!(did_you_mean("RATE", &known), Some("rate"));
        assert_eq!(did_you_mean("bandwidth", &known), None);
    }
}
