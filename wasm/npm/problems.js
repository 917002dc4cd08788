// Status, title and name of the status of each problem, by its code. Written by scripts/docs.

export const PROBLEMS = {
  body_empty: [400, "There is no picture in the request", "Bad Request"],
  image_too_wide: [400, "The picture is too wide or too high", "Bad Request"],
  internal_error: [500, "The server failed", "Internal Server Error"],
  invalid_image: [400, "The picture cannot be read", "Bad Request"],
  invalid_parameter: [400, "A parameter cannot be used", "Bad Request"],
  max_bytes_unreachable: [400, "The picture does not fit into so few bytes", "Bad Request"],
  missing_characters: [400, "The watermark's text cannot be drawn", "Bad Request"],
  too_many_frames: [400, "The animation has too many frames", "Bad Request"],
  too_many_pixels: [400, "The picture has too many pixels", "Bad Request"],
  too_much_memory: [413, "The picture takes more memory than there is", "Content Too Large"],
  watermark_not_png_or_jpeg: [400, "The watermark is not a PNG or JPEG", "Bad Request"],
  watermark_too_large: [400, "The watermark's picture is too large", "Bad Request"],
  wrong_format: [400, "The picture is not what Content-Type says", "Bad Request"],
};
