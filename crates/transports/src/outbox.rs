use std::collections::VecDeque;

/// Something to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its number, for the application.
    pub number: u64,
    /// Stream in which it is delivered in order.
    pub stream: u8,
    /// Its size, at least one byte.
    pub bytes: u64,
}

/// A part of a message as a packet carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Number of the message.
    pub message: u64,
    /// Its stream.
    pub stream: u8,
    /// Bytes of this part, at least one.
    pub bytes: u32,
}

/// Messages that were not sent as a whole.
#[derive(Clone, Default, Debug)]
pub(crate) struct Outbox(VecDeque<Message>);

impl Outbox {
    pub fn push(&mut self, message: Message) {
        self.0.push_back(message);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next part, of up to `most` bytes.
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
