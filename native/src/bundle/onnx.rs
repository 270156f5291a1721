//! Writes ONNX graphs of a few nodes: the test graph of a device, the graphs that check and copy an episode's rows, nodes of a flow, and
//! those of tests.

pub mod copy_rows;
pub mod finite;
pub mod unroll;
pub mod wire;

use self::wire::bytes;

/// A node of the default domain: a NodeProto.
pub fn node(name: &str, operator: &str, inputs: &[&str], outputs: &[&str]) -> Vec<u8> {
    let fields = inputs.iter().map(|name| (1, *name)).chain(outputs.iter().map(|name| (2, *name)));
    fields.chain([(3, name), (4, operator)]).flat_map(|(number, text)| bytes(number, text.as_bytes())).collect()
}

/// An integer attribute: a field of a NodeProto.
fn attribute(name: &str, value: u8) -> Vec<u8> {
    const INT: [u8; 3] = [0xa0, 0x01, 2];
    bytes(5, &[&bytes(1, name.as_bytes())[..], &[0x18, value], &INT].concat())
}

/// A ModelProto whose inputs and outputs are vectors of four f32.
pub fn graph_with(inputs: &[&str], outputs: &[&str], nodes: &[Vec<u8>]) -> Vec<u8> {
    const LEN: u8 = 4;
    let shaped = bytes(2, &bytes(1, &[0x08, LEN]));
    let inputs = inputs.iter().map(|name| port(11, name, F32, &shaped));
    model(inputs.chain(outputs.iter().map(|name| port(12, name, F32, &[]))), nodes)
}

/// A model of one operator that every provider has.
pub fn one_relu() -> Vec<u8> {
    graph_with(&["x"], &["y"], &[node("only", "Relu", &["x"], &["y"])])
}

/// A model that copies any number of bytes from `x` to `y`.
pub fn bytes_through() -> Vec<u8> {
    typed(&[("x".into(), U8)], &[("y".into(), U8)], &[node("only", "Identity", &["x"], &["y"])])
}

/// A ModelProto whose inputs and outputs have a type each, and the shape of the bound value.
pub fn typed(inputs: &[(String, u8)], outputs: &[(String, u8)], nodes: &[Vec<u8>]) -> Vec<u8> {
    let ports = |number: u8, ports: &[(String, u8)]| -> Vec<Vec<u8>> {
        ports.iter().map(|(name, kind)| port(number, name, *kind, &[])).collect()
    };
    model(ports(11, inputs).into_iter().chain(ports(12, outputs)), nodes)
}

/// An input (11) or an output (12). Without a shape it has that of the value.
fn port(number: u8, name: &str, kind: u8, shape: &[u8]) -> Vec<u8> {
    let tensor = [&[0x08, kind], shape].concat();
    bytes(number, &[bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat())
}

fn model(ports: impl Iterator<Item = Vec<u8>>, nodes: &[Vec<u8>]) -> Vec<u8> {
    let mut graph: Vec<u8> = nodes.iter().flat_map(|node| bytes(1, node)).collect();
    graph.extend(bytes(2, b"graph"));
    graph.extend(ports.flatten());
    // IR version 8; operators of version 17.
    [vec![0x08, 8], bytes(7, &graph), bytes(8, &[0x10, 17])].concat()
}

/// A constant of the graph: a TensorProto, a vector or with None a scalar.
pub fn floats(name: &str, len: Option<u8>, values: &[f32]) -> Vec<u8> {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(name, F32, len, &raw)
}

/// The same for a vector of 64-bit integers.
pub fn ints(name: &str, values: &[i64]) -> Vec<u8> {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(name, I64, Some(values.len() as u8), &raw)
}

pub const F32: u8 = 1;
const U8: u8 = 2;
/// 32-bit integers.
pub const I32: u8 = 6;
/// 64-bit integers.
pub const I64: u8 = 7;

/// The same for values of the type `kind`; `raw` has them in little-endian order.
pub fn tensor(name: &str, kind: u8, len: Option<u8>, raw: &[u8]) -> Vec<u8> {
    let dims = len.map_or(Vec::new(), |len| vec![0x08, len]);
    [dims, vec![0x10, kind], bytes(8, name.as_bytes()), bytes(9, raw)].concat()
}
