//! Rectangles of pixels.

/// A rectangle of a picture or of an animation's canvas, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// The number of columns to its left.
    pub left: usize,
    /// The number of rows above it.
    pub top: usize,
    /// Its width.
    pub width: usize,
    /// Its height.
    pub height: usize,
}

impl Rectangle {
    /// The rectangle without pixels.
    pub(super) const EMPTY: Rectangle = Rectangle::whole(0, 0);

    /// A whole canvas of this size.
    pub const fn whole(width: u32, height: u32) -> Rectangle {
        Rectangle {
            left: 0,
            top: 0,
            width: width as usize,
            height: height as usize,
        }
    }

    /// The visible part of the rectangle on a canvas of `width` by `height`; empty if it lies
    /// outside.
    pub(super) fn clip(self, width: u32, height: u32) -> Rectangle {
        let (width, height) = (width as usize, height as usize);
        let (left, top) = (self.left.min(width), self.top.min(height));
        Rectangle {
            left,
            top,
            width: self.width.min(width - left),
            height: self.height.min(height - top),
        }
    }

    /// The smallest rectangle that contains both.
    #[must_use]
    pub fn union(self, other: Rectangle) -> Rectangle {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { other } else { self };
        }
        let (left, top) = (self.left.min(other.left), self.top.min(other.top));
        let right = (self.left + self.width).max(other.left + other.width);
        let bottom = (self.top + self.height).max(other.top + other.height);
        Rectangle {
            left,
            top,
            width: right - left,
            height: bottom - top,
        }
    }

    /// Whether it has no pixels.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }
}
