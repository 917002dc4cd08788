//! The flags of other programs, and their names here.

/// Flags that people bring along, and the end of a sentence about them.
const HINTS: [(&[&str], &str); 8] = [
    (
        &["-s", "--size", "-size"],
        "--max-bytes bounds the size of each file, --width and --height that of the picture",
    ),
    (
        &["--resize", "-resize", "--scale"],
        "--width 400 --height 300 resizes pictures to a box",
    ),
    (
        &["-m", "--method", "-z"],
        "--effort low|medium|high|max says how much work goes into each file",
    ),
    (
        &["-j", "--jobs", "-mt"],
        "--threads NUMBER bounds the cores",
    ),
    (
        &["-v", "--verbose"],
        "each picture has a line unless --quiet is given, and -V prints the version",
    ),
    (
        &["-f", "--format"],
        "the format of a picture is known by its bytes",
    ),
    (&["-d", "--out-dir", "--outdir"], "-o FOLDER/ says where to"),
    (&["-l"], "--lossless codes pixels without loss"),
];

/// The end of a sentence about a flag that this program does not have, if others do.
pub(in crate::cli) fn hint(flag: &str) -> Option<&'static str> {
    let mut hints = HINTS.iter();
    let found = hints.find(|(flags, _)| flags.contains(&flag));
    found.map(|(_, hint)| *hint)
}
