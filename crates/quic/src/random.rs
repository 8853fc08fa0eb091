//! Everything that the stack draws at random, drawn from the world's seed instead.

use std::sync::Arc;

use bentpipe_base::Rng;
use noq_proto::crypto::{CryptoError, HandshakeTokenKey, HmacKey};
use noq_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig};

/// Smallest UDP payload of a path that carries QUIC (RFC 9000, section 14).
pub const LEAST_PAYLOAD: u16 = 1200;
/// Largest UDP payload (RFC 9000, section 18.2).
const MOST_PAYLOAD: u16 = 65_527;

/// Bytes of a connection ID; the usual length of servers.
const ID_BYTES: usize = 8;

/// Returns the configuration of an endpoint whose random numbers come from `seed`.
pub(crate) fn endpoint_config(seed: u64, payload: u16) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(ResetKey(seed)));
    let payload = payload.clamp(LEAST_PAYLOAD, MOST_PAYLOAD);
    config.max_udp_payload_size(payload).expect("a payload within the limits of QUIC");
    let mut rng = Rng::stream(seed, "quic.stack");
    let mut bytes = [0; 32];
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&rng.bits().to_le_bytes());
    }
    config.rng_seed(Some(bytes));
    config.cid_generator(Arc::new(move || Box::new(Ids(Rng::stream(seed, "quic.ids")))));
    config
}

/// Returns a connection ID.
pub(crate) fn id(rng: &mut Rng) -> ConnectionId {
    ConnectionId::new(&rng.bits().to_le_bytes())
}

/// Connection IDs of an endpoint.
struct Ids(Rng);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        id(&mut self.0)
    }
    fn cid_len(&self) -> usize {
        ID_BYTES
    }
    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// Makes the tokens of stateless resets.
struct ResetKey(u64);

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let number =
            data.iter().fold(self.0, |sum, byte| sum.wrapping_mul(257).wrapping_add(u64::from(*byte)));
        let mut rng = Rng::stream(number, "quic.reset");
        for part in signature.chunks_mut(8) {
            part.copy_from_slice(&rng.bits().to_le_bytes()[..part.len()]);
        }
    }
    fn signature_len(&self) -> usize {
        32
    }
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = vec![0; self.signature_len()];
        self.sign(data, &mut own);
        if own == signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// Key of address validation tokens. Servers here send none and accept none.
pub(crate) struct NoTokens;

impl HandshakeTokenKey for NoTokens {
    fn seal(&self, _: u128, _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Err(CryptoError)
    }
    fn open<'a>(&self, _: u128, _: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        Err(CryptoError)
    }
}
