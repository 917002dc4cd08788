//! Which input becomes which output, decided before anything is converted.

use super::folders;
use super::naming::Name;
use crate::cli::names::shown;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs};
use towebp_pipeline::image::{AcceptedFormats, Format};

/// The name of standard input, besides `-`.
const STANDARD_INPUT: &str = "/dev/stdin";

/// The name of standard output, besides `-`. It is not opened by this name, since a socket cannot
/// be opened, and a file would be written from its beginning.
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// Where a picture is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    StandardInput,
    File(PathBuf),
}

/// Where a WebP is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    StandardOutput,
    File(PathBuf),
}

/// One input and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) input: Input,
    pub(super) target: Target,
}

/// Where the WebP files go, by the flags of the command.
#[derive(Clone, Debug, Default)]
pub(super) struct Destination {
    /// `--output`
    pub(super) output: Option<PathBuf>,
    /// `--recursive`
    pub(super) recursive: bool,
    /// `--name`
    pub(super) name: Option<Name>,
    /// `--accept`
    pub(super) accepts: AcceptedFormats,
}

/// The tasks of a command.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) tasks: Vec<Task>,
    /// The formats that are converted beside PNG, JPEG, GIF and BMP.
    accepts: AcceptedFormats,
    /// Inputs that are WebP files already, if those are not converted.
    pub(super) webps: Vec<PathBuf>,
    /// Files that cannot be read or written, with the reasons.
    pub(super) failed: Vec<(PathBuf, String)>,
}

/// A picture to convert.
struct Found {
    input: Input,
    /// Its path below the folder that was named.
    below: Option<PathBuf>,
}

/// Finds the pictures, and chooses the output of each.
///
/// # Errors
/// A sentence for the user: no input, standard input or output among many, or an output that cannot
/// be meant.
pub(super) fn plan(inputs: &[PathBuf], destination: &Destination) -> Result<Plan, String> {
    let inputs: Vec<Input> = inputs.iter().map(|input| Input::new(input)).collect();
    let are_many = inputs.len() > 1 || destination.recursive;
    if inputs.is_empty() {
        return Err("no input was given; allowed are one or more pictures, or -".to_owned());
    }
    if are_many && inputs.contains(&Input::StandardInput) {
        return Err("- (standard input) must be the only input".to_owned());
    }
    let output = destination.output.as_deref();
    if let (Some(Input::File(last)), None) = (inputs.last(), output)
        && inputs.len() > 1
        && is_named_webp(last)
        && !last.exists()
    {
        let last = shown(last);
        return Err(format!(
            "{last} does not exist; an output is given by -o: towebp convert {} -o {last}",
            inputs[0]
        ));
    }
    let folder = match output {
        Some(output) if is_standard_output(output) && are_many => {
            return Err(
                "-o - (standard output) takes one input; for many give a folder".to_owned(),
            );
        }
        Some(output) if output.is_dir() || ends_with_slash(output) => Some(output),
        Some(output) if are_many && is_named_webp(output) => {
            return Err(format!(
                "-o {} is the name of one picture, and there are several inputs, or -r; give a folder, which may end in /",
                shown(output)
            ));
        }
        Some(output) if are_many => Some(output),
        Some(output) => {
            if destination.name.is_some() {
                return Err(format!(
                    "-o {} is the name of a file, and --name was given, too; give one of the two, or end the folder \
                     with /",
                    shown(output)
                ));
            }
            let input = inputs.first().expect("there is one");
            return Ok(single(input, output, destination.accepts));
        }
        None => None,
    };
    if let Some(folder) = folder.filter(|folder| folder.exists() && !folder.is_dir()) {
        return Err(format!(
            "-o {} is a file; several pictures, or -r, need a folder",
            shown(folder)
        ));
    }
    let name = destination.name.clone().unwrap_or_default();
    if name.has_folder() && folder.is_none() {
        return Err(
            "--name with {dir} needs -o FOLDER, below which the folders are made".to_owned(),
        );
    }
    let mut plan = Plan {
        accepts: destination.accepts,
        ..Plan::default()
    };
    for input in inputs {
        for found in plan.find(input, destination.recursive, folder) {
            plan.add(found, folder, &name);
        }
    }
    plan.reject_collisions();
    Ok(plan)
}

fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new(STANDARD_OUTPUT)
}

fn is_named_webp(path: &Path) -> bool {
    let ending = path.extension();
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("webp"))
}

fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

/// The plan for an only input and a file, or standard output.
fn single(input: &Input, output: &Path, accepts: AcceptedFormats) -> Plan {
    let mut plan = Plan {
        accepts,
        ..Plan::default()
    };
    let target = if is_standard_output(output) {
        Target::StandardOutput
    } else {
        Target::File(output.to_owned())
    };
    for Found { input, .. } in plan.find(input.clone(), false, None) {
        plan.tasks.push(Task {
            input,
            target: target.clone(),
        });
    }
    plan.reject_collisions();
    plan
}

impl Plan {
    /// The pictures that an argument stands for.
    fn find(&mut self, input: Input, recursive: bool, output: Option<&Path>) -> Vec<Found> {
        let alone = |input| vec![Found { input, below: None }];
        let path = match input {
            Input::StandardInput => return alone(input),
            Input::File(path) => path,
        };
        if recursive && path.is_dir() {
            let found = folders::find(&path, output, self.accepts);
            self.failed.extend(found.unreadable);
            let pictures = found.pictures.into_iter().map(|picture| Found {
                below: picture.strip_prefix(&path).ok().map(Path::to_owned),
                input: Input::File(picture),
            });
            return pictures.collect();
        }
        if !self.accepts.webp && folders::is_webp(&path) {
            self.webps.push(path);
            return Vec::new();
        }
        alone(Input::File(path))
    }

    fn add(&mut self, found: Found, folder: Option<&Path>, name: &Name) {
        let target = match (&found.input, folder) {
            (Input::StandardInput, None) => Target::StandardOutput,
            (Input::StandardInput, Some(folder)) => {
                Target::File(folder.join(name.of(Path::new("stdin"))))
            }
            (Input::File(path), None) => Target::File(path.with_file_name(name.of(path))),
            (Input::File(path), Some(folder)) => {
                let below = found.below.as_deref().and_then(Path::parent);
                let below = below.filter(|_| !name.has_folder());
                let folder = folder.join(below.unwrap_or(Path::new("")));
                Target::File(folder.join(name.of(path)))
            }
        };
        self.tasks.push(Task {
            input: found.input,
            target,
        });
    }

    /// Keeps the tasks whose output is no input and no other task's output, and a file that was
    /// named twice once. The others fail.
    fn reject_collisions(&mut self) {
        let files = self.tasks.iter().map(|task| match &task.input {
            Input::File(path) => identity(path),
            Input::StandardInput => PathBuf::from(STANDARD_INPUT),
        });
        let files: Vec<PathBuf> = files.collect();
        let inputs: HashSet<&PathBuf> = files.iter().collect();
        let mut of_target: HashMap<PathBuf, Vec<usize>> = HashMap::new();
        let mut kept = vec![true; self.tasks.len()];
        for (index, task) in self.tasks.iter().enumerate() {
            let Target::File(target) = &task.target else {
                continue;
            };
            let of_same = of_target.entry(identity(target)).or_default();
            kept[index] = of_same.iter().all(|other| files[*other] != files[index]);
            if kept[index] {
                of_same.push(index);
            }
        }
        for (target, tasks) in of_target {
            let is_input = inputs.contains(&target);
            if tasks.len() == 1 && !is_input {
                continue;
            }
            for &index in &tasks {
                let task = &self.tasks[index];
                let others = tasks.iter().filter(|other| **other != index);
                let mut others = others.map(|other| &self.tasks[*other].input);
                let reason = match others.next() {
                    Some(other) => format!(
                        "{} would be made of {other}, too; {}",
                        task.target,
                        hint(&task.input, other)
                    ),
                    None => format!("{} would overwrite an input; give another -o", task.target),
                };
                kept[index] = false;
                if let Input::File(path) = &task.input {
                    self.failed.push((path.clone(), reason));
                }
            }
        }
        self.failed.sort();
        let mut kept = kept.into_iter();
        self.tasks
            .retain(|_| kept.next().expect("one for each task"));
    }
}

/// The flags by which two inputs get different outputs.
fn hint(input: &Input, other: &Input) -> &'static str {
    if input.ending() == other.ending() {
        "with -o, --name '{dir}/{stem}.webp' keeps both"
    } else {
        "--name '{stem}.{ext}.webp' keeps both"
    }
}

impl Task {
    /// Where the input itself is written in place of its WebP: the same name with the ending of the
    /// input's own name, or that of its format.
    pub(super) fn target_of_original(&self, bytes: &[u8]) -> Target {
        let Target::File(path) = &self.target else {
            return Target::StandardOutput;
        };
        let own = self.input.ending();
        let ending = Format::sniff(bytes).map_or("", Format::ending);
        Target::File(path.with_extension(own.unwrap_or(ending.as_ref())))
    }

    /// Whether the input was changed after this file; standard input always was.
    pub(super) fn is_newer_than(&self, output: &Path) -> bool {
        let Input::File(input) = &self.input else {
            return true;
        };
        let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
        match (changed(input), changed(output)) {
            (Some(input), Some(output)) => input > output,
            // The conversion reports the error.
            _ => true,
        }
    }

    /// Whether a path leads to the input.
    pub(super) fn is_input(&self, path: &Path) -> bool {
        let Input::File(input) = &self.input else {
            return false;
        };
        let file = |path: &Path| fs::canonicalize(path).ok();
        path == input || file(path).is_some_and(|found| file(input) == Some(found))
    }
}

impl Input {
    /// The ending of the file's name.
    fn ending(&self) -> Option<&OsStr> {
        match self {
            Input::File(path) => path.extension(),
            Input::StandardInput => None,
        }
    }

    fn new(path: &Path) -> Input {
        if path == Path::new("-") || path == Path::new(STANDARD_INPUT) {
            return Input::StandardInput;
        }
        Input::File(path.to_owned())
    }

    /// The name of the file, or of the standard stream.
    pub(super) fn name(&self) -> &OsStr {
        match self {
            Input::StandardInput => OsStr::new("standard input"),
            Input::File(path) => path.as_os_str(),
        }
    }
}

impl Target {
    /// The name of the file, or of the standard stream.
    pub(super) fn name(&self) -> &OsStr {
        match self {
            Target::StandardOutput => OsStr::new("standard output"),
            Target::File(path) => path.as_os_str(),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(Path::new(self.name())))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(Path::new(self.name())))
    }
}

/// A path that is equal for two names of the same file, if its folder exists.
fn identity(path: &Path) -> PathBuf {
    let in_its_folder = || {
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder?,
        };
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize()
        .ok()
        .or_else(in_its_folder)
        .or_else(|| std::path::absolute(path).ok())
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(inputs: &[&str], output: Option<&str>) -> Result<Vec<String>, String> {
        let inputs: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
        let destination = Destination {
            output: output.map(PathBuf::from),
            ..Destination::default()
        };
        let plan = plan(&inputs, &destination)?;
        if let [(path, reason), ..] = plan.failed.as_slice() {
            return Err(format!("{}: {reason}", path.display()));
        }
        Ok(plan
            .tasks
            .iter()
            .map(|task| task.target.to_string())
            .collect())
    }

    #[test]
    fn outputs_take_the_inputs_names() {
        assert_eq!(targets(&["x/a.png"], None), Ok(vec!["x/a.webp".to_owned()]));
        assert_eq!(
            targets(&["x/a.b.png"], Some("out/")),
            Ok(vec!["out/a.b.webp".to_owned()])
        );
        assert_eq!(
            targets(&["a.png"], Some("c.bin")),
            Ok(vec!["c.bin".to_owned()])
        );
        assert_eq!(
            targets(&["a.png", "x/b"], Some("out")),
            Ok(vec!["out/a.webp".to_owned(), "out/b.webp".to_owned()])
        );
        assert_eq!(
            targets(&["a.png", "x/b"], None),
            Ok(vec!["a.webp".to_owned(), "x/b.webp".to_owned()])
        );
    }

    #[test]
    fn one_input_goes_into_a_folder_that_exists() {
        let folder = std::env::temp_dir();
        let folder = folder
            .to_str()
            .expect("the temporary folder's name is UTF-8");
        let target = targets(&["a.png"], Some(folder)).expect("a valid plan");
        assert_eq!(Path::new(&target[0]), Path::new(folder).join("a.webp"));
    }

    #[test]
    fn standard_streams_stand_alone() {
        for input in ["-", STANDARD_INPUT] {
            assert_eq!(
                targets(&[input], None),
                Ok(vec!["standard output".to_owned()])
            );
            assert_eq!(
                targets(&[input], Some("a.webp")),
                Ok(vec!["a.webp".to_owned()])
            );
        }
        for output in ["-", STANDARD_OUTPUT] {
            assert_eq!(
                targets(&["a.png"], Some(output)),
                Ok(vec!["standard output".to_owned()])
            );
        }
        assert!(targets(&["a.png", "-"], Some("out")).is_err());
        assert!(targets(&["a.png", "b.png"], Some("-")).is_err());
        assert!(targets(&[], None).is_err());
    }

    #[test]
    fn two_inputs_never_share_an_output() {
        assert_eq!(
            targets(&["x/a.png", "y/a.jpg"], Some("out")),
            Err(
                "x/a.png: out/a.webp would be made of y/a.jpg, too; --name '{stem}.{ext}.webp' keeps both"
                    .to_owned()
            )
        );
        assert!(targets(&["a.png", "./a.jpg"], None).is_err());
    }

    #[test]
    fn a_file_that_is_named_twice_is_converted_once() {
        for names in [["a.png", "a.png"], ["a.png", "./a.png"]] {
            assert_eq!(targets(&names, None), Ok(vec!["a.webp".to_owned()]));
        }
    }

    #[test]
    fn an_input_is_never_overwritten() {
        assert!(targets(&["a.webp"], None).is_err());
        assert!(targets(&["a.png"], Some("./a.png")).is_err());
        assert!(targets(&["x/a.png", "a.webp"], Some(".")).is_err());
    }
}
