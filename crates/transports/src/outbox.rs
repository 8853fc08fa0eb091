use std::collections::VecDeque;

/// Message of the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Number, chosen by the application.
    pub number: u64,
    /// Stream in which it is delivered in order.
    pub stream: u8,
    /// Size in bytes, at least one.
    pub bytes: u64,
}

/// Part of a message in one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Number of the message.
    pub message: u64,
    /// Stream of the message.
    pub stream: u8,
    /// Size of this part in bytes, at least one.
    pub bytes: u32,
}

/// Messages not yet sent completely.
#[derive(Clone, Default, Debug)]
pub(crate) struct Outbox(VecDeque<Message>);

impl Outbox {
    pub fn push(&mut self, message: Message) {
        self.0.push_back(message);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next fragment of at most `most` bytes.
    pub fn fragment(&mut self, most: u32) -> Option<Fragment> {
        let message = self.0.front_mut()?;
        let bytes = message.bytes.min(u64::from(most)) as u32;
        message.bytes -= u64::from(bytes);
        let fragment = Fragment { message: message.number, stream: message.stream, bytes };
        if message.bytes == 0 {
            self.0.pop_front();
        }
        Some(fragment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_leaves_in_parts() {
        let mut outbox = Outbox::default();
        outbox.push(Message { number: 3, stream: 1, bytes: 2500 });
        let parts: Vec<_> = std::iter::from_fn(|| outbox.fragment(1000)).collect();
        assert_eq!(parts.iter().map(|part| part.bytes).collect::<Vec<_>>(), [1000, 1000, 500]);
        assert!(outbox.is_empty());
    }
}
