//! Protobuf as bytes: the fields of a message in order, and how one is written. The reader knows what a message means.

/// The fields of a message, in order.
pub struct Fields<'a>(pub &'a [u8]);

#[derive(Clone, Copy)]
pub enum Value<'a> {
    Number(u64),
    /// A text, bytes, or another message.
    Bytes(&'a [u8]),
    Fixed,
}

/// A field, and all of its bytes, so that it can be written unchanged.
pub struct Field<'a> {
    pub number: u64,
    pub value: Value<'a>,
    pub whole: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let whole = self.0;
        let field = field(&mut self.0).map(|(number, value)| Field {
            number,
            value,
            whole: &whole[..whole.len() - self.0.len()],
        });
        // A broken field ends the message.
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn field<'a>(rest: &mut &'a [u8]) -> Result<(u64, Value<'a>), String> {
    let key = varint(rest)?;
    let value = match key & 7 {
        0 => Value::Number(varint(rest)?),
        1 => taken(rest, 8).map(|_| Value::Fixed)?,
        2 => {
            let length = usize::try_from(varint(rest)?).map_err(|_| broken())?;
            Value::Bytes(taken(rest, length)?)
        }
        5 => taken(rest, 4).map(|_| Value::Fixed)?,
        _ => return Err(broken()),
    };
    Ok((key >> 3, value))
}

/// A number of variable length, taken from the front of `rest`.
pub fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = taken(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(broken())
}

fn taken<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, left) = rest.split_at_checked(length).ok_or_else(broken)?;
    *rest = left;
    Ok(taken)
}

pub fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| broken())
}

fn broken() -> String {
    "it is not an ONNX file".into()
}

/// A field of bytes; `number` is at most 15.
pub fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
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
