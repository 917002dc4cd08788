//! The contract of the kernel that converts two rows of pixels to two rows of luma and one of
//! chroma (RFC 6386, section 9.2).

/// A row of chroma at half size, and how much color varies within each sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChromaRow {
    /// Cb and Cr, padded to whole macroblocks.
    pub planes: [Vec<u8>; 2],
    /// The color range of each sample's four pixels: the range of red - green or of blue - green,
    /// whichever is wider, at most 255; 0 in the padding.
    pub spread: Vec<u8>,
}

impl ChromaRow {
    /// A row of `stride` zeros.
    pub fn new(stride: usize) -> ChromaRow {
        ChromaRow {
            planes: [vec![0; stride], vec![0; stride]],
            spread: vec![0; stride],
        }
    }
}

/// The kernel. A value of an implementation proves that the machine has its instructions.
pub trait RowKernels: Copy {
    /// Converts two rows of pixels to luma, and the means of 2x2 pixels to chroma; an odd last
    /// column counts twice. The last sample fills the rest of a row. Rows have at least one pixel,
    /// and luma rows are twice as long as chroma rows.
    fn convert<const CHANNELS: usize>(
        self,
        rows: [&[u8]; 2],
        luma: [&mut [u8]; 2],
        chroma: &mut ChromaRow,
    );
}
