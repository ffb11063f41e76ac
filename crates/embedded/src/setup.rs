use millpond_coap::{Config, IdGenerator, block::BlockSize};
#[cfg(any(feature = "calm", feature = "rfc7252"))]
use millpond_control::Preset;
use millpond_control::{ChanceSeed, PeerController};

/// How a [`Node`](crate::Node) behaves.
#[derive(Debug)]
pub struct Setup {
    /// The message layer's. The longest datagrams are no longer than the node's buffer, whatever is said here.
    pub config: Config,
    /// What every peer's controller starts as.
    pub controller: PeerController,
    /// Of all that is drawn; differs from device to device, and need not be secret.
    pub chance: ChanceSeed,
    /// Makes message IDs and tokens, which nobody may guess.
    pub id_generator: IdGenerator,
    /// The largest blocks sent and asked for. Smaller ones are taken where the buffer has no room for these.
    pub block: BlockSize,
    /// Bytes of the longest body of a request that a [`Resource`](crate::Resource) is handed.
    pub longest_upload: usize,
    /// The most observers that are kept of what is served.
    pub observers: usize,
}

impl Setup {
    /// With any controller, within [`Config::SMALL`]; blocks of 512 bytes, requests of 2048, four observers. `key` comes from the device's source of
    /// secrets and is never used twice.
    #[must_use]
    pub fn new(controller: impl Into<PeerController>, seed: u64, key: [u8; 16]) -> Self {
        Self {
            config: Config::SMALL,
            controller: controller.into(),
            chance: ChanceSeed::new(seed),
            id_generator: IdGenerator::secret(key),
            block: BlockSize::B512,
            longest_upload: 2_048,
            observers: 4,
        }
    }

    /// With calm.
    #[cfg(feature = "calm")]
    #[must_use]
    pub fn calm(seed: u64, key: [u8; 16]) -> Self {
        Self::new(Preset::CALM.build(), seed, key)
    }

    /// With the fixed timer of RFC 7252 §4.2, to compare with.
    #[cfg(feature = "rfc7252")]
    #[must_use]
    pub fn rfc7252(seed: u64, key: [u8; 16]) -> Self {
        Self::new(Preset::RFC7252.build(), seed, key)
    }
}
