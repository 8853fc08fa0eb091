//! A scenario file before its checks, which the command line may change.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::algorithm::check_flow_cc;
use crate::buffer;
use crate::check::check;
use crate::deployment::{Class, Deployment};
use crate::describe::world;
use crate::draw;
use crate::embedded::{self, ELEMENTS, SCENARIOS, names};
use crate::error::{Error, Mistake, Place};
use crate::file::{FilesGiven, FilesRead, files_read_by, read_text, with_files};
use crate::form::{self, Form, Report};
use crate::model::{Draws, Scenario};
use crate::parse;
use crate::sky::{ConstellationGroup, Orbits};
use crate::split;
use crate::suggest::did_you_mean;
use crate::tree::{Entry, Node, Table, Value};

/// Content of a scenario file with the changes of the command line. Checks are made only in [`Draft::scenario`], so that changes
/// may depend on each other. A clone is cheap, for sweeps.
#[derive(Clone, Debug)]
pub struct Draft {
    name: String,
    root: Node,
    /// Files that were read for this draft and its clones.
    files: Arc<Mutex<FilesRead>>,
    /// The only files that the scenario can read; `None` for those of the file system.
    given: Option<FilesGiven>,
}

impl Draft {
    /// Loads the built-in scenario of this name, else the file at this path.
    ///
    /// # Errors
    /// [`Error::UnknownScenario`], [`Error::Unreadable`], or [`Error::Mistakes`] if the file is not TOML.
    pub fn load(path_or_name: &str) -> Result<Self, Error> {
        let (draft, read) = files_read_by(|| Self::load_file(path_or_name));
        draft.inspect(|draft| draft.note_files(read))
    }

    /// Returns the files that were read for this draft and its clones so far: the scenario, and after [`Draft::scenario`] those that it
    /// names.
    pub fn files(&self) -> FilesRead {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes `files` the only ones that the scenario can read.
    #[must_use]
    pub fn with_files(self, files: FilesGiven) -> Self {
        Self { given: Some(files), ..self }
    }

    fn note_files(&self, read: FilesRead) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).extend(read);
    }

    fn load_file(path_or_name: &str) -> Result<Self, Error> {
        if let Some(text) = embedded::text(SCENARIOS, path_or_name) {
            return Self::parse(path_or_name, text);
        }
        let is_path = path_or_name.contains(['/', '\\']) || path_or_name.ends_with(".toml");
        if !is_path && !Path::new(path_or_name).is_file() {
            return Err(Error::UnknownScenario {
                name: path_or_name.to_owned(),
                known: names(SCENARIOS).map(str::to_owned).collect(),
            });
        }
        let text = read_text(Path::new(path_or_name))
            .map_err(|source| Error::Unreadable { file: path_or_name.to_owned(), source })?;
        Self::parse(path_or_name, &text)
    }

    /// Parses a scenario. `file` appears in its mistakes and defines its name.
    ///
    /// # Errors
    /// [`Error::Mistakes`] if the text is not TOML.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let table = parse::document(file, text)?;
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file);
        let place = Place::File { file: file.into(), line: 1, column: 1 };
        let root = Node { value: Value::Table(table), place };
        Ok(Self { name: stem.to_owned(), root, files: Arc::default(), given: None })
    }

    /// Applies `KEY=VALUE`, the argument of `--set`: `link.satellite.loss.rate=1e-4`, `duration=60 s`.
    ///
    /// # Errors
    /// [`Error::Mistakes`] if the argument has another form, or names an unknown node, link or flow group.
    pub fn set(&mut self, key_and_value: &str) -> Result<(), Error> {
        let place = Place::Argument(Arc::from(format!("--set {key_and_value}")));
        let split = key_and_value.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((path, value)) = split.filter(|(path, _)| path.split('.').all(|key| !key.is_empty())) else {
            let accepted = "KEY=VALUE such as `duration=60 s` or `link.satellite.loss.rate=1e-4`";
            return Err(mistake(place, "", format!("`{key_and_value}`"), accepted));
        };
        self.refuse_unknown_group(path, &place)?;
        self.root.put(path, parse::argument(value, &place));
        Ok(())
    }

    /// Sets the algorithm of every flow group that is not `fixed` to `name`. Parameters of its algorithm from the file are
    /// dropped; those from [`Draft::set`] are kept.
    ///
    /// # Errors
    /// [`Error::UnknownAlgorithm`], or [`Error::Mistakes`] if every group is fixed.
    pub fn set_cc(&mut self, name: &str) -> Result<(), Error> {
        if self.give_cc(name, |_| true)? {
            return Ok(());
        }
        let accepted = "a scenario with a flow group that is not `fixed`";
        Err(mistake(cc_argument(name), "flow", "no flow group under comparison".to_owned(), accepted))
    }

    /// Sets the algorithm of every flow group that is not `fixed` and has none, such as one added by [`Draft::set`].
    ///
    /// # Errors
    /// [`Error::UnknownAlgorithm`].
    pub fn set_missing_cc(&mut self, name: &str) -> Result<(), Error> {
        self.give_cc(name, |flow| flow.get("cc").is_none()).map(drop)
    }

    /// Sets the algorithm of the `wanted` flow groups that are not `fixed`. Returns true if there was one.
    fn give_cc(&mut self, name: &str, wanted: impl Fn(&Table) -> bool) -> Result<bool, Error> {
        check_flow_cc(name)?;
        let place = cc_argument(name);
        let root = self.root.table_mut(&place);
        let mut given = false;
        for entry in &mut root.sub_table("flow", &place).entries {
            let flow = entry.node.table_mut(&place);
            if flow.get("fixed").is_none_or(|fixed| fixed.value != Value::Flag(true)) && wanted(flow) {
                let name = Node { value: Value::Text(name.to_owned()), place: place.clone() };
                flow.sub_table("cc", &place).put("name", name);
                given = true;
            }
        }
        Ok(given)
    }

    /// Configures every proxy of the scenario from a class of the proxy configuration file at `path`. The class is the one with
    /// this name, or the first one that splits connections. The scenario's own values of these keys are dropped. Proxies connect
    /// onward when a client's connection is established, as the proxy on a real link does.
    ///
    /// # Errors
    /// The errors of [`Deployment::load`], and [`Error::Mistakes`] if there is no matching class or no proxy.
    pub fn set_proxies(&mut self, path: &str, class: Option<&str>) -> Result<(), Error> {
        let place = Place::Argument(Arc::from(format!("--proxy {path}")));
        let (loaded, read) = files_read_by(|| Deployment::load_with_tables(path));
        self.note_files(read);
        let (deployment, tables) = loaded?;
        let splits =
            |(_, found): &(usize, &Class)| found.proxy && class.is_none_or(|name| name == found.name);
        let Some((number, _)) = deployment.classes.iter().enumerate().find(splits) else {
            let names =
                deployment.classes.iter().filter(|class| class.proxy).map(|class| class.name.as_str());
            let accepted = format!(
                "a file with a class that splits connections (in this one: {})",
                names.collect::<Vec<_>>().join(", ")
            );
            return Err(mistake(
                place,
                "class",
                class.map_or("none".into(), |name| format!("\"{name}\"")),
                &accepted,
            ));
        };
        let is_proxy = |entry: &Entry| {
            let kind = entry.node.as_table().and_then(|node| node.get("kind"));
            kind.is_some_and(|kind| kind.value == Value::Text("proxy".to_owned()))
        };
        let nodes = self.root.table_mut(&place).sub_table("node", &place);
        let mut changed = false;
        for node in nodes.entries.iter_mut().filter(|entry| is_proxy(entry)) {
            let table = node.node.table_mut(&place);
            table.entries.retain(|entry| !split::KEYS.contains(&entry.key.as_str()));
            let keys =
                tables[number].entries.iter().filter(|entry| split::KEYS.contains(&entry.key.as_str()));
            table.entries.extend(keys.cloned());
            // The kind may come from the command line, which would override the values from files.
            table.put("kind", Node { value: Value::Text("proxy".to_owned()), place: node.place.clone() });
            table.put("connect", Node { value: Value::Text("late".to_owned()), place: place.clone() });
            changed = true;
        }
        if changed {
            return Ok(());
        }
        let accepted = "a scenario with a node of kind \"proxy\", such as geo-vsat (--set node.NAME.kind=proxy makes one of a router)";
        Err(mistake(place, "node", "no proxy".to_owned(), accepted))
    }

    /// Returns the typed scenario.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with every mistake in the file and in the changes.
    pub fn scenario(&self) -> Result<Scenario, Error> {
        self.scenario_for(None)
    }

    /// Returns the typed scenario with this seed in place of its own. The seed chooses the values that are drawn.
    ///
    /// # Errors
    /// As [`Draft::scenario`].
    pub fn scenario_for(&self, seed: Option<u64>) -> Result<Scenario, Error> {
        let read = || with_files(self.given.as_ref(), || self.read_scenario(seed));
        let (scenario, read) = files_read_by(read);
        self.note_files(read);
        scenario
    }

    fn read_scenario(&self, seed: Option<u64>) -> Result<Scenario, Error> {
        let mut scenario = Scenario::unread(&self.name);
        let mut report = Report::default();
        let drawn = draw::has_draws(&self.root).then(|| draw::drawn(&self.root, seed, &mut report));
        if drawn.is_some() {
            // Tables that are not drawn as they should be have no values to read.
            report = report.unless_mistaken(Report::default())?;
            let draft = self.clone();
            scenario.draws = Draws::by(move |seed| draft.scenario_for(Some(seed)));
        }
        let root = drawn.as_ref().unwrap_or(&self.root);
        let limits = buffer::limits(root);
        if limits.is_empty() {
            return self.read_tree(root, (scenario, seed), report);
        }
        let mut root = root.clone();
        buffer::hide(&mut root, &limits);
        let known = self.read_tree(&root, (scenario.clone(), seed), Report::default())?;
        buffer::show(&mut root, (&limits, &known), &mut report);
        self.read_tree(&root, (scenario, seed), report)
    }

    /// Reads `root` into `scenario`, of which only name and draws are known.
    fn read_tree(
        &self,
        root: &Node,
        (mut scenario, seed): (Scenario, Option<u64>),
        mut report: Report,
    ) -> Result<Scenario, Error> {
        let tcp = root.as_table().and_then(|root| root.get("tcp"));
        form::read(root, "", &mut report, |form| world(form, &mut scenario, tcp));
        scenario.seed = seed.unwrap_or(scenario.seed);
        scenario.constellations.iter_mut().for_each(|group| self.load_elements(group, &mut report));
        if report.is_empty() {
            check(&scenario, root, &mut report);
        }
        report.unless_mistaken(scenario)
    }

    /// Keys of TCP settings that the file or the command line gives to the flow group `flow`, in the order of the tables: those for all flows,
    /// those of the group, and those of its receivers.
    pub fn tcp_settings(&self, flow: &str) -> Vec<String> {
        let tables = ["tcp".to_owned(), format!("flow.{flow}.tcp"), format!("flow.{flow}.receiver.tcp")];
        let keys = |path: &String| {
            let table = self.table().find(path).and_then(|entry| entry.node.as_table());
            let entries = table.map_or(&[][..], |table| &table.entries);
            entries.iter().map(|entry| format!("{path}.{}", entry.key)).collect::<Vec<_>>()
        };
        tables.iter().flat_map(keys).collect()
    }

    /// Reads the keys that `describe` names; any other key is a mistake.
    pub(crate) fn read(&self, describe: impl FnOnce(&mut Form<'_>)) -> Result<(), Error> {
        let mut report = Report::default();
        form::read(&self.root, "", &mut report, describe);
        report.unless_mistaken(())
    }

    /// Loads the element file of a constellation: a built-in one, or a path relative to the scenario's folder.
    fn load_elements(&self, group: &mut ConstellationGroup, report: &mut Report) {
        let Orbits::Elements { file, text, .. } = &mut group.orbits else { return };
        if let Some(built_in) = embedded::text(ELEMENTS, file) {
            *text = built_in.into();
            return;
        }
        let key = format!("constellation.{}.file", group.name);
        let Some(entry) = self.table().find(&key) else { return };
        let folder = match &self.root.place {
            Place::File { file, .. } => Path::new(file.as_ref()).parent().map(Path::to_path_buf),
            _ => None,
        };
        let quoted: Vec<_> = names(ELEMENTS).map(|name| format!("\"{name}\"")).collect();
        match read_text(&folder.unwrap_or_default().join(&*file)) {
            Ok(read) => *text = read.into(),
            Err(error) => report.add(Mistake {
                place: entry.node.place.clone(),
                key,
                found: format!("\"{file}\" ({error})"),
                accepted: format!("a file of two-line elements or OMM, or {}", quoted.join(", ")),
                suggestion: None,
            }),
        }
    }

    /// Returns the title of the scenario, without checking the rest.
    pub(crate) fn title(&self) -> String {
        match self.table().get("title").map(|node| &node.value) {
            Some(Value::Text(title)) => title.clone(),
            _ => String::new(),
        }
    }

    fn table(&self) -> &Table {
        match &self.root.value {
            Value::Table(table) => table,
            _ => unreachable!("a document is a table"),
        }
    }

    /// Refuses a path to an unknown group. A path may add keys to a node, link or flow group, but not a new group.
    fn refuse_unknown_group(&self, path: &str, place: &Place) -> Result<(), Error> {
        let mut keys = path.split('.');
        let (Some(section @ ("constellation" | "node" | "link" | "flow")), Some(name), Some(_)) =
            (keys.next(), keys.next(), keys.next())
        else {
            return Ok(());
        };
        let groups = self.table().get(section).and_then(Node::as_table);
        let known: Vec<_> = groups.into_iter().flat_map(|groups| &groups.entries).map(|e| &e.key).collect();
        if known.iter().any(|known| *known == name) {
            return Ok(());
        }
        Err(Error::Mistakes(vec![Mistake {
            place: place.clone(),
            key: format!("{section}.{name}"),
            found: format!("an unknown {section}"),
            accepted: known.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "),
            suggestion: did_you_mean(name, &known).map(|name| format!("`{name}`")),
        }]))
    }
}

/// Returns the place of an algorithm named on the command line.
fn cc_argument(name: &str) -> Place {
    Place::Argument(Arc::from(format!("--cc {name}")))
}

fn mistake(place: Place, key: &str, found: String, accepted: &str) -> Error {
    let (key, accepted) = (key.to_owned(), accepted.to_owned());
    Error::Mistakes(vec![Mistake { place, key, found, accepted, suggestion: None }])
}
