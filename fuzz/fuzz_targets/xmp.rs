//! XMP and IPTC, of which `metadata=copyright` keeps creator, rights and license: no panic, a
//! packet no longer than these may be, and the same packet of the packet itself.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use towebp_pipeline::image::copyright;

/// Most bytes of a packet that was written anew.
const MOST: usize = 256 << 10;

fuzz_target!(|input: (Option<&[u8]>, Option<&[u8]>)| {
    let (xmp, iptc) = input;
    let Some(packet) = copyright(xmp, iptc) else {
        return;
    };
    assert!(packet.len() <= MOST, "{} bytes", packet.len());
    let again = copyright(Some(&packet), None).expect("it has properties");
    assert_eq!(
        String::from_utf8_lossy(&again),
        String::from_utf8_lossy(&packet)
    );
});
