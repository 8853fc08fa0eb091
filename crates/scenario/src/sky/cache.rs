//! Cache of constellations and their plans.

use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_orbit::OrbitError;

/// Number of latest answers kept: a comparison that varies the constellation has few of them.
const KEPT: usize = 8;

/// Latest answers to questions of a kind.
pub(super) struct Cache<Q, A>(pub Mutex<Vec<(Q, Arc<A>)>>);

impl<Q: PartialEq, A> Cache<Q, A> {
    /// Returns the answer to a question, made anew if it is not known.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn answer(
        &self,
        question: Q,
        make: impl FnOnce(&Q) -> Result<A, OrbitError>,
    ) -> Result<Arc<A>, OrbitError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = known().iter().find(|(known, _)| *known == question) {
            return Ok(answer.clone());
        }
        // Made without the lock, so that other questions need not wait.
        let answer = Arc::new(make(&question)?);
        let mut known = known();
        known.truncate(KEPT - 1);
        known.insert(0, (question, answer.clone()));
        Ok(answer)
    }
}
