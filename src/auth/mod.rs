//! How people and programs prove who they are: API tokens, passwords, cookies and invitation codes.
//!
//! Everything here is computed from values in memory. Nothing reads a file or a database, and
//! nothing knows HTTP: [`crate::store`] keeps what has to be kept, and `http` answers.

mod account_id;
mod base62;
mod code;
mod device_cookie;
mod email;
mod error;
mod password;
mod random;
mod second_factor;
mod secret;
mod sign_in_ticket;
mod throttle;
mod token;

pub use account_id::AccountId;
pub use base62::{decode_128, encode_128};
pub use code::{Code, CodeHash};
pub use device_cookie::DeviceId;
pub use email::Email;
pub use error::AuthError;
pub use password::{MEMORY, Password, Passwords};
pub use random::random_bytes;
pub use second_factor::{Nonce, Proof, SecondFactor, TotpKey};
pub use secret::Secret;
pub use sign_in_ticket::Ticket;
pub use throttle::{FailedAttempts, Origin, SignInThrottle, Wait, attempt_key};
pub use token::Token;

pub use device_cookie::{issue as issue_device_cookie, verify as verify_device_cookie};
