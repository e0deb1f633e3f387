//! Prints the verdict of `xsd-schema` on each instance of a corpus: `INSTANCE valid` or `INSTANCE invalid REASON`.
//! An instance `NAME.valid-LABEL.xml` or `NAME.invalid-LABEL.xml` is judged by `NAME.xsd`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use xsd_schema::validation::{
    CollectingValidationSink, SchemaValidator, SchemaValidity, ValidationFlags, drive_quick_xml,
};
use xsd_schema::{SchemaSet, SchemaSetBuilder};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: systole-oracles FOLDER")?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&folder)? {
        files.push(entry?.path());
    }
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "xml")) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let schema = name.split('.').next().unwrap_or_default();
        let path = Path::new(&folder).join(format!("{schema}.xsd")).canonicalize()?;
        let verdict = compile(&path).and_then(|set| judge(&set, &fs::read_to_string(file)?));
        match verdict {
            Ok(()) => println!("{name} valid"),
            Err(error) => println!("{name} invalid {}", error.to_string().replace('\n', " ")),
        }
    }
    Ok(())
}

fn compile(path: &Path) -> Result<SchemaSet, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let compiled = SchemaSetBuilder::new().add_source(&text, &path.to_string_lossy())?.compile()?;
    Ok(compiled.into_schema_set())
}

fn judge(set: &SchemaSet, instance: &str) -> Result<(), Box<dyn Error>> {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let validator = SchemaValidator::new(set, ValidationFlags::default());
    let mut run = validator.start_run(CollectingValidationSink { errors: &mut errors, warnings: &mut warnings });
    let outcome = drive_quick_xml(instance.as_bytes(), &mut run, set)?;
    drop(run);
    match errors.first() {
        Some(error) => Err(error.to_string().into()),
        None if outcome.root_validity == Some(SchemaValidity::Valid) => Ok(()),
        None => Err("the root is not known to be valid".into()),
    }
}
