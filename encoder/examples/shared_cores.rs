//! Encodes four pictures side by side on two cores, and stops what is not done after a second:
//! `cargo run --example shared_cores`.

use std::{num::NonZeroUsize, thread, time::Duration};
use towebp_encoder::{Cancel, ColorType, CpuBudget, EncodeError, Encoder, Picture};

fn main() -> Result<(), EncodeError> {
    let budget = CpuBudget::new(NonZeroUsize::new(2).expect("not zero"));
    let cancel = Cancel::new();
    let noise: Vec<u8> = (0..4_000_000u32)
        .map(|i| (i.wrapping_mul(i) >> 9) as u8)
        .collect();
    let picture = Picture::new(2000, 2000, ColorType::L8, &noise)?;
    let encoder = Encoder::lossless()
        .threads(2)
        .cpu_budget(&budget)
        .cancel(&cancel);
    let file_size = || {
        let _own_core = budget.occupy();
        encoder.encode(&picture).map(|encoded| encoded.file.len())
    };
    thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(file_size));
        thread::sleep(Duration::from_secs(1));
        cancel.cancel();
        for thread in threads {
            println!("{:?}", thread.join().expect("the encoder does not panic"));
        }
    });
    Ok(())
}
