//! Makes one graph of the whole flow from the graph of one step, so that a device runs all steps without the host.
//!
//! Nodes that depend on a latent or on the time are repeated for each step. All others, such as masks and positions, stand once and are
//! computed once for a chunk. The time of a step is a constant: ONNX Runtime computes what depends on it alone when it loads the graph.
//! Between two steps stand the nodes of `flow/euler.rs`, in the same order of operations. Weights stand once; weights in another file stay
//! there.
//!
//! The file is read as a protobuf message by the field numbers of onnx.proto, and unknown fields are kept. No shapes are checked: ONNX
//! Runtime does that when it opens the result.

mod node;
mod unused_inputs;

pub use unused_inputs::unused_inputs;

use self::node::{Made, Node};
use super::wire::{Field, Fields, Value, bytes, text};
use super::{floats, ints, tensor};
use std::collections::HashSet;

/// An input [1] that is the time.
pub struct Time<'a> {
    /// Its name.
    pub name: &'a str,
    /// The type of its values, as in TensorProto: f32 or i64.
    pub kind: u8,
    /// Its value in each step: one of that type, little-endian.
    pub values: Vec<Vec<u8>>,
}

/// The flow of a step graph.
pub struct Loop<'a> {
    /// The inputs that are the time.
    pub times: &'a [Time<'a>],
    pub steps: &'a [f32],
    pub latents: &'a [Latent<'a>],
}

impl<'a> Loop<'a> {
    /// Names of the inputs that differ from step to step.
    fn inputs(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let (latents, times) = (self.latents, self.times);
        latents.iter().map(|latent| latent.name).chain(times.iter().map(|time| time.name))
    }
}

/// A latent and its update.
pub struct Latent<'a> {
    pub name: &'a str,
    /// The name of its velocity, an output of the step. It has the latent's shape; with `branches` it has as many rows, and the latent has
    /// one.
    pub velocity: &'a str,
    /// Rows of the velocity if the latent has one: the first with the instruction, the last without; 1 or 2.
    pub branches: usize,
    /// The scale of the guidance; None: the first branch counts alone.
    pub guide: Option<f32>,
    pub read: bool,
}

/// A mark in every name that is made here, and in no other.
const MARK: &str = "##";

/// Nodes at most: each takes memory and time of the start.
const NODES_MAX: usize = 200_000;

/// Operators with a new result each time.
const RANDOM: [&str; 6] =
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"];

const GRAPH: u64 = 7;
const OPSET: u64 = 8;
const NODE: u64 = 1;
const INPUT: u64 = 11;
const OUTPUT: u64 = 12;
/// Shapes, which are inferred again, and annotations of values that are gone.
const VALUE_INFO: u64 = 13;
const QUANTIZATION: u64 = 14;
/// The first operator set in which `Split` takes sizes as an input.
const SPLIT_SINCE: u64 = 13;

/// The name of the latent after the last of `steps` steps.
pub fn result(latent: &str, steps: usize) -> String {
    at(latent, steps)
}

/// The name of the time difference of a step.
fn dt_of(step: usize) -> String {
    at(&format!("{MARK}dt"), step)
}

/// The name of the sizes of two branches.
fn branch_sizes() -> String {
    at(&format!("{MARK}branches"), 0)
}

fn at(name: &str, step: usize) -> String {
    format!("{name}{MARK}{step}")
}

fn guide_of(latent: &str) -> String {
    format!("{latent}.guide{MARK}")
}

/// Makes the whole flow of the step graph `model`, a ModelProto. The error is a sentence: the reason why the host has to run the steps.
pub fn unroll(model: &[u8], flow: &Loop<'_>) -> Result<Vec<u8>, String> {
    let (mut whole, mut found, mut version) = (Vec::with_capacity(model.len()), None, 0);
    for field in Fields(model) {
        let Field { number, value, whole: kept } = field?;
        match (number, value) {
            (GRAPH, Value::Bytes(graph)) if found.replace(graph).is_none() => continue,
            (GRAPH, _) => return Err("it has more than one graph".into()),
            (OPSET, Value::Bytes(opset)) => version = version.max(standard(opset)?),
            _ => {}
        }
        whole.extend(kept);
    }
    if flow.latents.iter().any(|latent| latent.branches > 1) && version < SPLIT_SINCE {
        return Err(format!("its operators are of version {version}, expected {SPLIT_SINCE}"));
    }
    let graph = Graph::read(found.ok_or("it has no graph")?)?;
    whole.extend(bytes(GRAPH as u8, &graph.unrolled(flow)?));
    Ok(whole)
}

/// The version of the standard operators, if an OperatorSetIdProto is theirs.
fn standard(opset: &[u8]) -> Result<u64, String> {
    let (mut domain, mut version) = ("", 0);
    for field in Fields(opset) {
        match field? {
            Field { number: 1, value: Value::Bytes(name), .. } => domain = text(name)?,
            Field { number: 2, value: Value::Number(number), .. } => version = number,
            _ => {}
        }
    }
    Ok(if matches!(domain, "" | "ai.onnx") { version } else { 0 })
}

/// A step graph; kept parts are bytes.
#[derive(Default)]
struct Graph<'a> {
    nodes: Vec<Node<'a>>,
    /// Name, type with shape, and the whole field.
    inputs: Vec<(&'a str, &'a [u8], &'a [u8])>,
    outputs: Vec<&'a str>,
    kept: Vec<&'a [u8]>,
}

impl<'a> Graph<'a> {
    fn read(graph: &'a [u8]) -> Result<Graph<'a>, String> {
        let mut read = Graph::default();
        for field in Fields(graph) {
            let Field { number, value, whole } = field?;
            match (number, value) {
                (NODE, Value::Bytes(node)) => read.nodes.push(Node::read(node)?),
                (INPUT, Value::Bytes(input)) => {
                    let (name, kind) = port(input)?;
                    read.inputs.push((name, kind, whole));
                }
                (OUTPUT, Value::Bytes(output)) => read.outputs.push(port(output)?.0),
                (VALUE_INFO | QUANTIZATION, _) => {}
                _ => read.kept.push(whole),
            }
        }
        Ok(read)
    }

    /// Names of the values that are not the same in every step.
    fn changing<'f>(&'f self, flow: &Loop<'f>) -> Result<HashSet<&'f str>, String> {
        let made: HashSet<&str> = self.nodes.iter().flat_map(|node| node.outputs.iter().copied()).collect();
        let mut changing: HashSet<&str> = flow.inputs().collect();
        let mut behind: HashSet<&str> = HashSet::new();
        for node in &self.nodes {
            if RANDOM.contains(&node.operator) {
                return Err(format!("node {} gives random numbers", node.name));
            }
            let needs = || node.inputs.iter().chain(&node.captured).copied();
            if let Some(early) = needs().find(|name| made.contains(name) && !behind.contains(name)) {
                return Err(format!("node {} stands before {early}, which it needs", node.name));
            }
            if node.captured.iter().any(|name| changing.contains(name)) {
                return Err(format!("node {} has a subgraph that reads what changes", node.name));
            }
            if node.inputs.iter().any(|name| changing.contains(name)) {
                changing.extend(&node.outputs);
            }
            behind.extend(&node.outputs);
        }
        Ok(changing)
    }

    fn unrolled(&self, flow: &Loop<'_>) -> Result<Vec<u8>, String> {
        let names = self.nodes.iter().flat_map(|node| node.inputs.iter().chain(&node.outputs).chain([&node.name]));
        if let Some(name) =
            names.copied().chain(self.inputs.iter().map(|input| input.0)).find(|name| name.contains(MARK))
        {
            return Err(format!("the name {name:?} has {MARK} in it"));
        }
        if self.nodes.len().saturating_mul(flow.steps.len()) > NODES_MAX {
            return Err(format!("it has {} nodes, too many for {} steps", self.nodes.len(), flow.steps.len()));
        }
        let changing = self.changing(flow)?;
        let own = |name: &str| self.inputs.iter().find(|input| input.0 == name);
        let mut graph = Vec::new();
        for (name, _, whole) in &self.inputs {
            if !flow.times.iter().any(|time| time.name == *name) {
                graph.extend(*whole);
            }
        }
        let mut needed = HashSet::new();
        for latent in flow.latents {
            let (_, kind, _) = own(latent.name).ok_or_else(|| format!("it has no input {}", latent.name))?;
            if !self.outputs.contains(&latent.velocity) {
                return Err(format!("it has no output {}", latent.velocity));
            }
            if latent.read {
                let name = result(latent.name, flow.steps.len());
                graph.extend(bytes(OUTPUT as u8, &[&bytes(1, name.as_bytes()), *kind].concat()));
                needed.insert(name);
            }
        }
        self.kept.iter().for_each(|kept| graph.extend(*kept));
        constants(flow).for_each(|tensor| graph.extend(bytes(5, &tensor)));
        let mut made = self.made(flow, &changing);
        // Nodes that only an unread latent needs are left out of the last step.
        for node in made.iter_mut().rev() {
            node.is_needed = node.outputs.iter().any(|name| needed.contains(name));
            if node.is_needed {
                needed.extend(node.inputs.iter().cloned());
            }
        }
        for node in made.iter().filter(|node| node.is_needed) {
            graph.extend(bytes(NODE as u8, &node.bytes));
        }
        Ok(graph)
    }

    fn made(&self, flow: &Loop<'_>, changing: &HashSet<&str>) -> Vec<Made> {
        let changes = |node: &Node<'_>| node.inputs.iter().any(|name| changing.contains(name));
        let (each, once): (Vec<&Node<'_>>, Vec<&Node<'_>>) = self.nodes.iter().partition(|node| changes(node));
        let mut made: Vec<Made> = once.iter().map(|node| node.renamed(node.name.into(), |name| name.into())).collect();
        let starts = |name: &str| flow.latents.iter().any(|latent| latent.name == name);
        for step in 0..flow.steps.len() {
            let here = |name: &str| match name {
                // The noise is the input itself.
                _ if !changing.contains(name) || (step == 0 && starts(name)) => name.to_string(),
                _ => at(name, step),
            };
            made.extend(each.iter().map(|node| node.renamed(at(node.name, step), here)));
            for latent in flow.latents {
                advance(latent, step, here, &mut made);
            }
        }
        made
    }
}

/// The constants: the times of all steps, and the time differences.
fn constants(flow: &Loop<'_>) -> impl Iterator<Item = Vec<u8>> {
    let times = flow.steps.iter().enumerate().flat_map(|(step, &dt)| {
        let constants =
            flow.times.iter().map(move |time| tensor(&at(time.name, step), time.kind, Some(1), &time.values[step]));
        constants.chain([floats(&dt_of(step), None, &[dt])])
    });
    let guides = flow.latents.iter().filter_map(|latent| Some(floats(&guide_of(latent.name), None, &[latent.guide?])));
    times.chain(guides).chain([ints(&branch_sizes(), &[1, 1])]).collect::<Vec<_>>().into_iter()
}

/// Adds the nodes of x ← x + dt · v, v = v_u + guide · (v_c − v_u) with guidance, else v_c: the same bits as `euler::advance`.
fn advance(latent: &Latent<'_>, step: usize, here: impl Fn(&str) -> String, made: &mut Vec<Made>) {
    let Latent { name, velocity, branches, guide, .. } = latent;
    let own = |part: &str| at(&format!("{name}.{part}"), step);
    let mut node = |operator: &str, inputs: &[&str], outputs: &[&str]| {
        made.push(Made::new(&at(&format!("flow.{name}.{}", outputs[0]), step), operator, inputs, outputs));
    };
    let (with, without) = (own("with"), own("without"));
    let mut v = here(velocity);
    if *branches > 1 {
        node("Split", &[&v, &branch_sizes()], &[&with, &without]);
        v = with.clone();
    }
    if guide.is_some() {
        let (apart, scaled, guided) = (own("apart"), own("scaled"), own("guided"));
        node("Sub", &[&with, &without], &[&apart]);
        node("Mul", &[&guide_of(name), &apart], &[&scaled]);
        node("Add", &[&without, &scaled], &[&guided]);
        v = guided;
    }
    let moved = own("moved");
    node("Mul", &[&dt_of(step), &v], &[&moved]);
    node("Add", &[&here(name), &moved], &[&at(name, step + 1)]);
}

/// Name of a ValueInfoProto, and its type as a field.
fn port(value: &[u8]) -> Result<(&str, &[u8]), String> {
    let (mut name, mut kind) = ("", &[][..]);
    for field in Fields(value) {
        match field? {
            Field { number: 1, value: Value::Bytes(bytes), .. } => name = text(bytes)?,
            Field { number: 2, whole, .. } => kind = whole,
            _ => {}
        }
    }
    Ok((name, kind))
}

#[cfg(test)]
mod tests;
