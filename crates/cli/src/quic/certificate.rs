//! Self-signed certificates, pinned by their fingerprint.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use noq_proto::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use noq_proto::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use noq_proto::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme, version,
};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::resume::hex;

/// Application protocol (ALPN): one bidirectional stream. The sender opens it with one byte; the bytes that TCP would carry follow.
pub const PROTOCOL: &[u8] = b"bentpipe/1";
/// Name in the certificate. No peer checks it.
pub const NAME: &str = "bentpipe";

/// SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate.as_ref()).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        let wrong = || format!("found {} characters, accepted: 64 hexadecimal digits", text.len());
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// Makes a certificate with a new key. Returns the server's part of TLS for a protocol, and the fingerprint.
pub fn server(protocol: &[u8]) -> Result<(QuicServerConfig, Fingerprint), Failure> {
    let failed = |error: &dyn fmt::Display| Failure::Work(format!("cannot make a certificate: {error}"));
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(|error| failed(&error))?;
    let certificate = made.cert.der().clone();
    let fingerprint = Fingerprint::of(&certificate);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate], key));
    let mut config = config.map_err(|error| failed(&error))?;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok((config.try_into().expect("ring has the initial cipher suite"), fingerprint))
}

/// Returns the client's part of TLS, which accepts only the certificate of the pin.
pub fn client(pin: Arc<Pin>) -> QuicClientConfig {
    let mut config = ClientConfig::builder_with_provider(pin.provider.clone())
        .with_protocol_versions(&[&version::TLS13])
        .expect("ring has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(pin)
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.try_into().expect("ring has the initial cipher suite")
}

/// Accepts the certificate with one fingerprint, and no other.
#[derive(Debug)]
pub struct Pin {
    wanted: Fingerprint,
    /// Fingerprint of a certificate that was refused.
    refused: OnceLock<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl Pin {
    /// Makes the verifier of a certificate.
    pub fn new(wanted: Fingerprint) -> Arc<Self> {
        let provider = Arc::new(ring::default_provider());
        Arc::new(Self { wanted, refused: OnceLock::new(), provider })
    }

    /// Returns the reason if the peer's certificate was refused.
    pub fn refusal(&self) -> Option<String> {
        let found = self.refused.get()?;
        Some(format!(
            "found a certificate with SHA-256 {found}, accepted: {} (--fingerprint); `bentpipe receive` prints its fingerprint",
            self.wanted
        ))
    }
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(certificate);
        if found == self.wanted {
            return Ok(ServerCertVerified::assertion());
        }
        self.refused.get_or_init(|| found);
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_written() {
        let (_, made) = server(PROTOCOL).unwrap();
        let text = made.to_string();
        assert_eq!((text.len(), text.parse()), (64, Ok(made)));
        let pairs: Vec<_> =
            text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap()).collect();
        assert_eq!(pairs.join(":").to_uppercase().parse(), Ok(made));
        for wrong in ["", "ab", &text[1..], &format!("{text}0"), &text.replace(&text[..1], "x")] {
            let why = wrong.parse::<Fingerprint>().unwrap_err();
            assert!(why.contains("64 hexadecimal digits"), "{why}");
        }
        assert_ne!(server(PROTOCOL).unwrap().1, made, "each start has its own certificate");
    }
}
