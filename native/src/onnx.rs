//! Writes ONNX graphs of a few nodes: the one that a device is tried with, and those of tests.

/// A node of the default domain, as NodeProto.
pub fn node(name: &str, operator: &str, inputs: &[&str], outputs: &[&str]) -> Vec<u8> {
    let fields = inputs.iter().map(|name| (1, *name)).chain(outputs.iter().map(|name| (2, *name)));
    fields.chain([(3, name), (4, operator)]).flat_map(|(number, text)| bytes(number, text.as_bytes())).collect()
}

/// A model whose inputs are vectors of four f32, and whose outputs have f32 too, as ModelProto.
pub fn graph_with(inputs: &[&str], outputs: &[&str], nodes: &[Vec<u8>]) -> Vec<u8> {
    const F32: u8 = 1;
    const LEN: u8 = 4;
    const INPUT: u8 = 11;
    let port = |number: u8, name: &&str| {
        // An output's shape is what comes out.
        let shape = if number == INPUT { bytes(2, &bytes(1, &[0x08, LEN])) } else { Vec::new() };
        let tensor = [vec![0x08, F32], shape].concat();
        let value = [bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat();
        bytes(number, &value)
    };
    let mut graph: Vec<u8> = nodes.iter().flat_map(|node| bytes(1, node)).collect();
    graph.extend(bytes(2, b"graph"));
    graph.extend(inputs.iter().flat_map(|name| port(INPUT, name)));
    graph.extend(outputs.iter().flat_map(|name| port(12, name)));
    // IR version 8; operators of version 17.
    [vec![0x08, 8], bytes(7, &graph), bytes(8, &[0x10, 17])].concat()
}

/// A field of bytes.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut len = content.len();
    while len >= 0x80 {
        field.push(len as u8 | 0x80);
        len >>= 7;
    }
    field.push(len as u8);
    field.extend(content);
    field
}
