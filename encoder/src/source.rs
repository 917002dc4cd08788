//! Where the pixels of a picture come from.

use super::threads::Workers;
use super::{EncodeError, Layout, RgbPicture, vp8l};
use std::borrow::Cow;

/// How pixels are coded. Those of a frame of an animation are not the same for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Without loss.
    Exact,
    /// With loss.
    Lossy,
}

/// Gives the pixels of a picture in the form that is asked for, as often as it is: each form takes as much memory as a picture.
pub trait Source: Sync {
    /// Width and height in pixels.
    fn size(&self) -> (usize, usize);

    /// What [`Source::row`] holds.
    fn layout(&self) -> Layout;

    /// A row as it is coded in a form, but for colours that nobody sees.
    fn row(&self, y: usize, form: Form) -> Cow<'_, [u8]>;

    /// All of it as it is coded without loss: ARGB. Fully transparent pixels keep their colour only if it is to be `exact`.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    fn argb(&self, exact: bool, workers: Workers<'_>) -> Result<Vec<u32>, EncodeError>;

    /// The alpha of each pixel as it is coded with loss, unless all are opaque.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    fn alpha(&self, workers: Workers<'_>) -> Result<Option<Vec<u8>>, EncodeError>;

    /// Does `work` with all of it as it is coded with loss.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`], and the errors of `work`.
    fn with_loss<T>(
        &self,
        workers: Workers<'_>,
        work: impl FnOnce(&RgbPicture<'_>) -> Result<T, EncodeError>,
    ) -> Result<T, EncodeError>;
}

/// As it is.
impl Source for RgbPicture<'_> {
    fn size(&self) -> (usize, usize) {
        (self.width as usize, self.height as usize)
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn row(&self, y: usize, _: Form) -> Cow<'_, [u8]> {
        let stride = self.width as usize * self.layout.channels();
        Cow::Borrowed(&self.pixels[y * stride..][..stride])
    }

    fn argb(&self, exact: bool, workers: Workers<'_>) -> Result<Vec<u32>, EncodeError> {
        vp8l::from_picture(self, exact, workers)
    }

    fn alpha(&self, workers: Workers<'_>) -> Result<Option<Vec<u8>>, EncodeError> {
        workers.check()?;
        Ok(match self.layout {
            Layout::Rgb => None,
            Layout::Rgba => {
                let alpha = self.pixels.chunks_exact(4).map(|pixel| pixel[3]);
                alpha.clone().any(|a| a != 255).then(|| alpha.collect())
            }
        })
    }

    fn with_loss<T>(
        &self,
        _: Workers<'_>,
        work: impl FnOnce(&RgbPicture<'_>) -> Result<T, EncodeError>,
    ) -> Result<T, EncodeError> {
        work(self)
    }
}
