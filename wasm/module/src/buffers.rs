//! The buffers that JavaScript writes to and reads from. WebAssembly has one thread here, and each
//! call ends before the next one begins.

use crate::Made;
use std::cell::RefCell;

/// An input of a call, by its number.
#[derive(Clone, Copy)]
pub(crate) enum Input {
    /// The file, or the pixels.
    Picture,
    /// Names and values of the parameters, in UTF-8, each ended by a zero byte.
    Parameters,
    /// The file of the watermark's picture; without bytes there is none.
    Watermark,
    /// A font.
    Font,
}

impl Input {
    pub(crate) const COUNT: usize = 4;

    pub(crate) fn of(number: u32) -> Option<Input> {
        let all = [
            Input::Picture,
            Input::Parameters,
            Input::Watermark,
            Input::Font,
        ];
        all.get(number as usize).copied()
    }
}

/// The bytes of each [`Input`].
pub(crate) type Inputs = [Vec<u8>; Input::COUNT];

thread_local! {
    static INPUTS: RefCell<Inputs> = const { RefCell::new([const { Vec::new() }; Input::COUNT]) };
    static RESULT: RefCell<Made> = const { RefCell::new(Made::NOTHING) };
}

pub(crate) fn with_inputs<T>(work: impl FnOnce(&mut Inputs) -> T) -> T {
    INPUTS.with_borrow_mut(work)
}

pub(crate) fn with_result<T>(work: impl FnOnce(&mut Made) -> T) -> T {
    RESULT.with_borrow_mut(work)
}
