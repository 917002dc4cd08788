//! The protocol of W3C `WebDriver`: JSON over HTTP to a driver on this machine.

use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// By this name an element's id stands in JSON (`WebDriver`, section 12.1).
pub const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long a command may take: loading a page or a script that waits, on a busy machine.
const COMMAND: Duration = Duration::from_mins(3);

/// The most bytes of an answer: a picture of a long page, in Base64.
const MAX_ANSWER: u64 = 64 << 20;

/// The way to a driver.
pub struct Wire {
    agent: ureq::Agent,
    address: String,
}

/// Why a command was not done.
#[derive(Debug)]
pub struct Failure {
    /// The protocol's word for it, such as `no such element`.
    pub error: String,
    /// What the driver says of it.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The driver's stack trace follows the first line.
        let message = self.message.lines().next().unwrap_or_default();
        write!(f, "{}: {message}", self.error)
    }
}

impl Wire {
    /// To the driver that listens on this port.
    pub fn to(port: u16) -> Wire {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(COMMAND))
            .build()
            .new_agent();
        Wire {
            agent,
            address: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Sends a command, and gives its value.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        parameters: Option<&Value>,
    ) -> Result<Value, Failure> {
        let url = format!("{}{path}", self.address);
        let answered = match method {
            "GET" => self.agent.get(&url).call(),
            "DELETE" => self.agent.delete(&url).call(),
            _ => self
                .agent
                .post(&url)
                .header("Content-Type", "application/json")
                .send(parameters.unwrap_or(&json!({})).to_string()),
        };
        let text = answered.and_then(|mut answer| {
            let body = answer.body_mut().with_config().limit(MAX_ANSWER);
            body.read_to_string()
        });
        let text = text.map_err(|error| Failure {
            error: "the driver does not answer".to_owned(),
            message: format!("{method} {path}: {error}"),
        })?;
        let mut answer: Value = serde_json::from_str(&text).map_err(|error| Failure {
            error: "the driver does not answer in JSON".to_owned(),
            message: format!("{error}: {text}"),
        })?;
        let value = answer["value"].take();
        match value["error"].as_str() {
            Some(error) => Err(Failure {
                error: error.to_owned(),
                message: value["message"].as_str().unwrap_or_default().to_owned(),
            }),
            None => Ok(value),
        }
    }
}

/// Decodes Base64 (RFC 4648, section 4), as pictures come in.
pub fn from_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in text.bytes().filter(|&byte| byte != b'=') {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => panic!("{:?} is no digit of Base64", char::from(digit)),
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
