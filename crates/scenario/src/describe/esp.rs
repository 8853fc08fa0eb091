use crate::form::Form;
use crate::model::{Esp, Reveals};
use crate::unit::Bytes;

/// Overhead of tunnel mode with AES-GCM for a full packet of 1500 bytes. Outer IP header 20 bytes, SPI and sequence number 8,
/// initialisation vector 8. Padding with its length and the next header 4, integrity check 16 (RFC 4303 section 2, RFC 4106).
const DEFAULT_OVERHEAD_BYTES: u32 = 56;
/// Two hash values of four bytes: one identifies the packet, the other the data that it acknowledges.
const DEFAULT_HASH_BYTES: u32 = 8;

/// Key `esp` of a flow.
pub(super) fn esp(form: &mut Form<'_>, esp: &mut Option<Esp>) {
    let of = |reveals| Some(Esp { reveals, overhead_bytes: DEFAULT_OVERHEAD_BYTES });
    let each =
        vec![None, of(Reveals::Nothing), of(Reveals::Hashes(DEFAULT_HASH_BYTES)), of(Reveals::Mapping)];
    form.variant(esp, name, each, |form, esp| {
        let Some(Esp { reveals, overhead_bytes }) = esp else { return };
        form.field("overhead", overhead_bytes, &Bytes::PACKET);
        if let Reveals::Hashes(bytes) = reveals {
            form.field("hash", bytes, &Bytes::PACKET);
        }
    });
}

fn name(esp: &Option<Esp>) -> &'static str {
    match esp.map(|esp| esp.reveals) {
        None => "none",
        Some(Reveals::Nothing) => "opaque",
        Some(Reveals::Hashes(_)) => "hashes",
        Some(Reveals::Mapping) => "mapping",
    }
}
