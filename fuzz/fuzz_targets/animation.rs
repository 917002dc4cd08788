//! Animations, of GIFs and PNGs through the whole conversion, with a watermark or none, and of
//! canvases whose alpha is any. Whatever comes in: no panic, the same bytes for another number of
//! threads, and every state of the screen for its time. Without loss it is exact in every pixel,
//! but for the color of fully transparent ones; with loss its alpha is.

#![cfg_attr(fuzzing, no_main)]

use fuzz::content::{AnyEffort, Content, Threads};
use gif::{DisposalMethod, Encoder, Repeat};
use image_webp::{LoopCount, WebPDecoder};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::iter;
use towebp_encoder::Cancelled;
use towebp_encoder::player::{Playback, merged, play};
use towebp_encoder::{self as webp, AnimationEncoder, Mode};
use towebp_pipeline::conversion::{self, Cancel, Fonts, Job, Params};
use towebp_pipeline::image::{self, Format, Image, Layout, Limits, Rectangle};
use towebp_pipeline::watermark::{self, Length, Overlay, Placement, Position};

fuzz_target!(|input: Input| input.check());

#[derive(Arbitrary, Debug)]
struct Input {
    source: Source,
    effort: AnyEffort,
    mode: AnyMode,
    quality: u8,
    threads: Threads,
    loops: u16,
    width: UpTo40<1>,
    height: UpTo40<1>,
    colors: Vec<[u8; 3]>,
    mark: Option<Mark>,
    frames: Vec<Frame>,
}

/// Where the canvases come from.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Source {
    Gif,
    Png,
    Canvases,
}

/// A watermark of GIFs and PNGs.
#[derive(Arbitrary, Debug)]
struct Mark {
    width: UpTo40<1>,
    height: UpTo40<1>,
    content: Content,
    position: u8,
    opacity: u8,
    margin: Option<u8>,
    is_tiled: bool,
    rotate: i8,
}

#[derive(Arbitrary, Debug)]
struct Frame {
    left: UpTo40<0>,
    top: UpTo40<0>,
    width: UpTo40<1>,
    height: UpTo40<1>,
    /// Hundredths of a second.
    delay: u16,
    content: Content,
    disposal: u8,
    is_interlaced: bool,
    /// The index that draws nothing.
    transparent: Option<u8>,
    /// Of its own palette, if it has one.
    colors: Option<Vec<[u8; 3]>>,
    /// How often it follows itself.
    repeats: u8,
    /// Of a PNG: whether it is drawn over what is there.
    is_drawn_over: bool,
}

impl Input {
    fn check(&self) {
        let repeated = |frame| iter::repeat_n(frame, 1 + usize::from(Frame::repeats(frame)));
        let frames = self.frames.iter().flat_map(repeated).take(MOST_FRAMES);
        let frames: &[&Frame] = &frames.collect::<Vec<_>>();
        if frames.len() < 2 {
            return; // a GIF of one frame is a still picture
        }
        let playback = match self.source {
            Source::Gif => self.playback_of_gif(frames),
            Source::Png => self.playback_of_png(frames),
            Source::Canvases => self.playback_of_canvases(frames),
        };
        let encode = |threads| match self.source {
            Source::Gif => self.convert(&self.gif(frames), Format::Gif, threads),
            Source::Png => self.convert(&self.png(frames), Format::Png, threads),
            Source::Canvases => self.encode(&playback, threads),
        };
        let webp = encode(1);
        let again = encode(self.threads.0);
        assert!(webp == again, "other bytes with {:?}", self.threads);
        self.check_played(&merged(&playback), &webp);
    }

    fn check_played(&self, playback: &Playback, webp: &[u8]) {
        let decoder = WebPDecoder::new(Cursor::new(webp)).expect("the container is in order");
        let size = (self.width.0.into(), self.height.0.into());
        assert_eq!(decoder.dimensions(), size);
        assert_eq!(decoder.num_frames() as usize, playback.len());
        let expected = match self.loops {
            0 => LoopCount::Forever,
            loops => LoopCount::Times(loops.try_into().expect("not 0")),
        };
        assert_eq!(decoder.loop_count(), expected);
        let played = play(webp);
        assert_eq!(played.len(), playback.len());
        for (number, (played, expected)) in played.iter().zip(playback).enumerate() {
            assert_eq!(played.1, expected.1, "time of state {number}");
            if self.mode.0 == Mode::Lossless {
                assert!(played.0 == expected.0, "state {number} looks otherwise");
            }
            let alpha = |canvas: &[u8]| canvas.iter().skip(3).step_by(4).copied().collect();
            let [played, expected]: [Vec<u8>; 2] = [alpha(&played.0), alpha(&expected.0)];
            assert!(played == expected, "alpha of state {number}");
        }
    }

    /// Through the conversion, as a request goes.
    fn convert(&self, file: &[u8], format: Format, threads: usize) -> Vec<u8> {
        let params = Params {
            quality: self.quality % 101,
            effort: self.effort.0,
            mode: self.mode.0,
            placement: self
                .mark
                .as_ref()
                .map_or(Placement::default(), Mark::placement),
            ..Params::parse(iter::empty()).expect("the defaults")
        };
        let mark = self.mark.as_ref().map(Mark::png);
        let job = Job {
            bytes: file,
            format,
            params: &params,
            watermark_picture: mark.as_deref(),
            fonts: Fonts::bundled(),
            limits: &Limits::DEFAULT,
            threads,
            cpu_budget: None,
            cancel: &Cancel::never(),
        };
        conversion::run(&job).expect("a good file").webp
    }

    /// Through the encoder alone.
    fn encode(&self, playback: &Playback, threads: usize) -> Vec<u8> {
        let encoder = webp::Encoder::lossy(self.quality % 101)
            .effort(self.effort.0)
            .mode(self.mode.0)
            .threads(threads);
        let (width, height) = (self.width.0.into(), self.height.0.into());
        let mut animation =
            AnimationEncoder::new(encoder, (width, height), self.loops).expect("good sides");
        for (canvas, milliseconds) in playback {
            let canvas = webp::Picture::new(width, height, webp::ColorType::Rgba8, canvas);
            let added = animation.add(&canvas.expect("a whole canvas"), *milliseconds);
            added.expect("a canvas of that size");
        }
        animation.finish().expect("there are frames").file
    }

    fn gif(&self, frames: &[&Frame]) -> Vec<u8> {
        let mut file = Vec::new();
        let palette = palette(&self.colors).into_flattened();
        let (width, height) = (self.width.0, self.height.0);
        let mut encoder =
            Encoder::new(&mut file, width, height, &palette).expect("a valid palette");
        // It says how often it is repeated.
        let repeat = match self.loops {
            0 => Repeat::Infinite,
            loops => Repeat::Finite(loops - 1),
        };
        encoder.set_repeat(repeat).expect("a Vec takes all");
        for frame in frames {
            let written = encoder.write_frame(&frame.to_gif());
            written.expect("a good frame");
        }
        drop(encoder);
        file
    }

    /// What a browser shows of [`Input::gif`].
    fn playback_of_gif(&self, frames: &[&Frame]) -> Playback {
        let mut canvas = self.canvas();
        let show = |frame: &Frame| {
            let before = canvas.clone();
            let colors = palette(frame.colors.as_ref().unwrap_or(&self.colors));
            let indices = frame.samples(1);
            self.draw(&mut canvas, frame, |at, pixel| {
                let index = indices[at];
                if frame.transparent != Some(index) {
                    let [red, green, blue] = colors[usize::from(index)];
                    *pixel = [red, green, blue, 255];
                }
            });
            let shown = canvas.as_flattened().to_vec();
            match frame.disposal() {
                DisposalMethod::Any | DisposalMethod::Keep => {}
                DisposalMethod::Background => {
                    self.draw(&mut canvas, frame, |_, pixel| *pixel = [0; 4]);
                }
                DisposalMethod::Previous => canvas = before,
            }
            // As browsers play what is to be shown for no time or a hundredth of a second.
            let hundredths = if frame.delay < 2 { 10 } else { frame.delay };
            (shown, u32::from(hundredths) * 10)
        };
        let mut playback: Playback = frames.iter().copied().map(show).collect();
        self.lay_mark_over(&mut playback);
        playback
    }

    fn png(&self, frames: &[&Frame]) -> Vec<u8> {
        let mut file = Vec::new();
        let (width, height) = (self.width.0.into(), self.height.0.into());
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgba);
        let set = encoder.set_animated(frames.len() as u32, self.loops.into());
        set.expect("there are frames");
        let mut writer = encoder.write_header().expect("a Vec takes all");
        for (index, frame) in frames.iter().enumerate() {
            let [left, top, width, height] = self.place(frame, index == 0);
            let write = |writer: &mut png::Writer<&mut Vec<u8>>| {
                if index > 0 {
                    writer.reset_frame_position()?;
                    writer.set_frame_dimension(width, height)?;
                    writer.set_frame_position(left, top)?;
                }
                writer.set_frame_delay(frame.delay, 1000)?;
                writer.set_dispose_op(frame.dispose_op())?;
                writer.set_blend_op(if frame.is_drawn_over {
                    png::BlendOp::Over
                } else {
                    png::BlendOp::Source
                })?;
                writer.write_image_data(&frame.content.pixels(width, height, 4))
            };
            write(&mut writer).expect("a good frame");
        }
        writer.finish().expect("as many as that");
        file
    }

    /// Left, top, width and height of a frame of a PNG, which lies on the canvas.
    fn place(&self, frame: &Frame, is_first: bool) -> [u32; 4] {
        let side = |offset: u16, side: u16, whole: u16| {
            let offset = offset.min(whole - 1);
            [offset, side.min(whole - offset)].map(u32::from)
        };
        if is_first {
            return [0, 0, self.width.0.into(), self.height.0.into()];
        }
        let [left, width] = side(frame.left.0, frame.width.0, self.width.0);
        let [top, height] = side(frame.top.0, frame.height.0, self.height.0);
        [left, top, width, height]
    }

    /// What a browser shows of [`Input::png`].
    fn playback_of_png(&self, frames: &[&Frame]) -> Playback {
        let mut canvas = self.canvas();
        let show = |(index, frame): (usize, &Frame)| {
            let before = canvas.clone();
            let [left, top, width, height] = self.place(frame, index == 0);
            let pixels = frame.content.pixels(width, height, 4);
            let places = || {
                (top..top + height).flat_map(move |y| {
                    (left..left + width).map(move |x| (y * u32::from(self.width.0) + x) as usize)
                })
            };
            for (place, &pixel) in places().zip(pixels.as_chunks::<4>().0) {
                let pixel = if frame.is_drawn_over {
                    over(pixel, canvas[place])
                } else {
                    pixel
                };
                canvas[place] = if pixel[3] == 0 { [0; 4] } else { pixel };
            }
            let shown = canvas.as_flattened().to_vec();
            match frame.dispose_op() {
                png::DisposeOp::None => {}
                png::DisposeOp::Previous if index > 0 => canvas = before,
                _ => places().for_each(|place| canvas[place] = [0; 4]),
            }
            let delay = if frame.delay <= 10 { 100 } else { frame.delay };
            (shown, u32::from(delay))
        };
        let mut playback: Playback = frames.iter().copied().enumerate().map(show).collect();
        self.lay_mark_over(&mut playback);
        playback
    }

    fn playback_of_canvases(&self, frames: &[&Frame]) -> Playback {
        let mut canvas = self.canvas();
        let show = |frame: &Frame| {
            let pixels = frame.samples(4);
            let pixels = pixels.as_chunks::<4>().0;
            self.draw(&mut canvas, frame, |at, pixel| {
                *pixel = pixels[at];
                if pixel[3] == 0 {
                    *pixel = [0; 4];
                }
            });
            (canvas.as_flattened().to_vec(), frame.delay.into())
        };
        frames.iter().copied().map(show).collect()
    }

    /// On all of each state: what was drawn onto nothing.
    fn lay_mark_over(&self, playback: &mut Playback) {
        let Some(mark) = &self.mark else { return };
        let cancel = Cancel::never();
        let (width, height) = (self.width.0.into(), self.height.0.into());
        let picture = image::decode(&mark.png(), Format::Png, &Limits::DEFAULT, &cancel);
        let picture = picture.expect("a good PNG");
        let overlay = Overlay::new(width, height, |mut image| {
            watermark::draw_picture(&mut image, &picture, &mark.placement(), &cancel)?;
            Ok::<Image, Cancelled>(image)
        });
        let overlay = overlay.expect("it is not cancelled");
        for (canvas, _) in playback {
            let mut image = Image {
                width,
                height,
                layout: Layout::Rgba,
                pixels: std::mem::take(canvas),
            };
            let all = Rectangle {
                left: 0,
                top: 0,
                width: width as usize,
                height: height as usize,
            };
            let laid = overlay.lay_over(&mut image, all, &cancel);
            laid.expect("it is not cancelled");
            *canvas = image.pixels;
            for pixel in canvas.as_chunks_mut::<4>().0 {
                *pixel = if pixel[3] == 0 { [0; 4] } else { *pixel };
            }
        }
    }

    fn canvas(&self) -> Vec<[u8; 4]> {
        vec![[0; 4]; usize::from(self.width.0) * usize::from(self.height.0)]
    }

    /// Calls `draw` with each place in a frame that is on the canvas, too, and the pixel there.
    fn draw(
        &self,
        canvas: &mut [[u8; 4]],
        frame: &Frame,
        mut draw: impl FnMut(usize, &mut [u8; 4]),
    ) {
        let [left, top] = [frame.left, frame.top].map(|offset| usize::from(offset.0));
        let [width, height] = [frame.width, frame.height].map(|side| usize::from(side.0));
        let rows = canvas.chunks_exact_mut(self.width.0.into());
        for (y, row) in rows.skip(top).take(height).enumerate() {
            for (x, pixel) in row.iter_mut().skip(left).take(width).enumerate() {
                draw(y * width + x, pixel);
            }
        }
    }
}

impl Mark {
    fn placement(&self) -> Placement {
        Placement {
            position: Position::ALL[usize::from(self.position) % Position::ALL.len()],
            margin: self.margin.map(|margin| Length::Pixels(margin.into())),
            scale: None,
            rotate: self.rotate.into(),
            is_tiled: self.is_tiled,
            opacity: self.opacity % 101,
        }
    }

    /// Red, green, blue and alpha.
    fn png(&self) -> Vec<u8> {
        let (width, height) = (self.width.0.into(), self.height.0.into());
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgba);
        let mut writer = encoder.write_header().expect("a Vec takes all");
        let written = writer.write_image_data(&self.content.pixels(width, height, 4));
        written.expect("as many as that");
        writer.finish().expect("a Vec takes all");
        file
    }
}

impl Frame {
    fn repeats(&self) -> u8 {
        self.repeats % 4
    }

    fn disposal(&self) -> DisposalMethod {
        DisposalMethod::from_u8(self.disposal % 4).expect("there are four")
    }

    fn dispose_op(&self) -> png::DisposeOp {
        match self.disposal % 4 {
            2 => png::DisposeOp::Background,
            3 => png::DisposeOp::Previous,
            _ => png::DisposeOp::None,
        }
    }

    fn samples(&self, channels: usize) -> Vec<u8> {
        let (width, height) = (self.width.0, self.height.0);
        self.content.pixels(width.into(), height.into(), channels)
    }

    fn to_gif(&self) -> gif::Frame<'static> {
        let indices = self.samples(1);
        let rows: Vec<&[u8]> = indices.chunks_exact(self.width.0.into()).collect();
        // GIF 89a, appendix E.
        let passes = [(0, 8), (4, 8), (2, 4), (1, 2)];
        let interlaced = passes
            .iter()
            .flat_map(|&(first, step)| rows.iter().skip(first).step_by(step));
        let buffer = if self.is_interlaced {
            interlaced.copied().flatten().copied().collect()
        } else {
            indices.clone()
        };
        gif::Frame {
            left: self.left.0,
            top: self.top.0,
            width: self.width.0,
            height: self.height.0,
            delay: self.delay,
            dispose: self.disposal(),
            interlaced: self.is_interlaced,
            transparent: self.transparent,
            palette: self
                .colors
                .as_ref()
                .map(|colors| palette(colors).into_flattened()),
            buffer: buffer.into(),
            ..gif::Frame::default()
        }
    }
}

/// A pixel over another, by the formula for colors from 0 to 1.
fn over(above: [u8; 4], below: [u8; 4]) -> [u8; 4] {
    let [above, below] = [above, below].map(|pixel| pixel.map(|sample| f64::from(sample) / 255.0));
    let alpha = above[3] + below[3] * (1.0 - above[3]);
    if alpha == 0.0 {
        return [0; 4];
    }
    let sample = |value: f64| (value * 255.0 + 0.5 + 1e-9) as u8;
    let color = |channel: usize| {
        let sum = above[channel] * above[3] + below[channel] * below[3] * (1.0 - above[3]);
        sample(sum / alpha)
    };
    [color(0), color(1), color(2), sample(alpha)]
}

/// These colors, again and again: one for each index.
fn palette(colors: &[[u8; 3]]) -> Vec<[u8; 3]> {
    let grays = [[0; 3], [255; 3]];
    let colors = if colors.is_empty() { &grays } else { colors };
    colors.iter().copied().cycle().take(256).collect()
}

/// More take their time and show nothing new.
const MOST_FRAMES: usize = 8;

/// `LEAST` to 40.
#[derive(Clone, Copy, Debug)]
struct UpTo40<const LEAST: u16>(u16);

impl<'a, const LEAST: u16> Arbitrary<'a> for UpTo40<LEAST> {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        bytes.int_in_range(LEAST..=40).map(UpTo40)
    }
}

#[derive(Debug)]
struct AnyMode(Mode);

impl<'a> Arbitrary<'a> for AnyMode {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        // Without loss most is seen.
        let modes = [Mode::Lossless, Mode::Lossless, Mode::Auto, Mode::Lossy];
        bytes.choose(&modes).map(|mode| AnyMode(*mode))
    }
}
