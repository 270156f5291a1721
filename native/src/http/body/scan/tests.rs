//! Verdicts, skeletons and tables of bodies.

use super::*;

const RULES: Rules = Rules {
    depth_max: 64,
    values_max: 20_000,
    string_bytes_max: 32,
    escaped_bytes_max: 16,
    image_bytes_max: 300,
    texts: false,
};

fn scanned(text: &str, rules: Rules) -> Result<(String, Vec<BodyText>, Vec<u8>, ScanResult), Fault> {
    let body = text.as_bytes().to_vec();
    let mut found = ScanResult::default();
    scan(&body, rules, &mut found)?;
    let skeleton = String::from_utf8(found.skeleton.clone()).unwrap();
    Ok((skeleton, found.table.clone(), body, found))
}

fn fault(text: &str) -> Option<Fault> {
    scanned(text, RULES).err()
}

#[test]
fn what_is_short_stays_and_blanks_go() {
    let escapes = "[\"\\u006dodel\",\"a\\/b\",\"\\u007f\",\"\\u0022\"]";
    assert_eq!(scanned(escapes, RULES).unwrap().0, "[\"model\",\"a/b\",\"\x7f0\",\"\x7f1\"]");
    let text = " { \"a\" : [ 1 , -2.5e3 , true , false , null , \"x\\n\" , { } , [ ] ] ,\t\"é\":\"€\" }\r\n";
    let (skeleton, table, ..) = scanned(text, RULES).unwrap();
    assert_eq!(skeleton, "{\"a\":[1,-2.5e3,true,false,null,\"x\\n\",{},[]],\"é\":\"€\"}");
    assert!(table.is_empty());
}

#[test]
fn malformed_text_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "{\"a\":}",
        "[1 2]",
        "[1]x",
        "nul",
        "truex",
        "'a'",
        "\"\t\"",
        "\"\\x\"",
        "\"abc",
        "01",
        "1.",
        "[\"a\":1]",
        "{\"a\",1}",
        "\u{a0}1",
        "NaN",
        "/**/1",
        "[,1]",
    ] {
        assert_eq!(fault(text), Some(Fault::Syntax), "{text:?}");
    }
    for text in ["1", "\"a\"", "[]", "{}", "-0", " null ", "\u{feff}{}"] {
        assert_eq!(fault(text), None, "{text:?}");
    }
}

#[test]
fn what_is_not_utf_8_is_refused_behind_its_bounds() {
    let not_text = |start: &str| {
        let mut body = start.as_bytes().to_vec();
        body.extend(b"\"\xff\"]");
        scan(&body, RULES, &mut ScanResult::default()).err()
    };
    assert_eq!(not_text("["), Some(Fault::Syntax));
    assert_eq!(not_text(&"[".repeat(65)), Some(Fault::Depth));
    assert_eq!(not_text(&format!("[{}", "1,".repeat(20_000))), Some(Fault::Values));
}

#[test]
fn depth_and_values_are_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!((fault(&nested(64)), fault(&nested(65))), (None, Some(Fault::Depth)));
    assert_eq!(fault(&"[".repeat(200_000)), Some(Fault::Depth));
    let wide = |values: usize| format!("[{}]", vec!["{}"; values - 1].join(" , "));
    assert_eq!((fault(&wide(20_000)), fault(&wide(20_001))), (None, Some(Fault::Values)));
}

#[test]
fn long_strings_and_strings_like_placeholders_are_in_the_table() {
    let long = "x".repeat(33);
    let escaped = "\\n".repeat(9);
    let text =
        format!("{{\"{long}\":\"{escaped}\",\"a\":\"\x7f0\",\"b\":\"\\u007f1\",\"c\":\"   {}\"}}", "\\t".repeat(20));
    let (skeleton, table, body, found) = scanned(&text, RULES).unwrap();
    assert_eq!(skeleton, "{\"\x7f0\":\"\x7f1\",\"a\":\"\x7f2\",\"b\":\"\x7f3\",\"c\":\"\x7f4\"}");
    assert!(found.keys);
    let raw = |at: usize| str::from_utf8(&body[table[at].start as usize..][..table[at].len as usize]).unwrap();
    assert_eq!([raw(0), raw(1), raw(2), raw(3)], [long.as_str(), &escaped, "\x7f0", "\\u007f1"]);
    assert_eq!(
        table.iter().map(|text| (text.units, text.blank)).collect::<Vec<_>>(),
        [(33, 0), (9, 1), (2, 0), (2, 0), (23, 1)]
    );
}

#[test]
fn texts_are_unescaped_as_narrow_as_they_can_be() {
    let text = format!(
        "[\"{}\",\"\\u00e9{}\",\"\\ud800{}\",\"{}\"]",
        "a".repeat(40),
        "é".repeat(20),
        "z".repeat(40),
        "€😀".repeat(9)
    );
    let (_, table, _, found) = scanned(&text, Rules { texts: true, ..RULES }).unwrap();
    let forms: Vec<_> = table.iter().map(|text| (text.form, text.start, text.len)).collect();
    let [narrow, wide] = [Form::Narrow as u32, Form::Wide as u32];
    assert_eq!(forms, [(narrow, 0, 40), (narrow, 40, 21), (wide, 0, 41), (wide, 41, 27)]);
    assert_eq!(found.narrow[40..], [0xE9; 21]);
    assert_eq!(found.wide[0], 0xD800);
    assert_eq!(found.wide[41..44], [0x20AC, 0xD83D, 0xDE00]);
}

#[test]
fn jpegs_are_decoded_in_their_place() {
    let url = |rest: &str| format!("[\"data:image/jpeg;base64,{rest}\"]");
    let plain = url(&"/9j/".repeat(10));
    for text in [plain.clone(), plain.replace('/', "\\/")] {
        let (_, table, _, found) = scanned(&text, RULES).unwrap();
        let [BodyText { form, image, image_len, jpeg_len, len, .. }] = table[..] else { panic!("one string") };
        assert_eq!((form, image, image_len, jpeg_len), (Form::JpegBytes as u32, 0, 30, 30));
        assert_eq!((len as usize, found.images), (text.len() - 4, [0xFF, 0xD8, 0xFF].repeat(10)));
    }

    let form = |rest: &str| {
        let (_, table, ..) = scanned(&url(rest), RULES).unwrap();
        (table[0].form, table[0].jpeg_len)
    };
    assert_eq!(form(&"AAAA".repeat(100)), (Form::JpegBytes as u32, 300));
    assert_eq!(form(&("AAAA".repeat(100) + "AA==")), (Form::Jpeg as u32, 301));
    assert_eq!(form(&("AAAA".repeat(100) + "AA\\u003d\\u003d")), (Form::Jpeg as u32, 301));
    assert_eq!(form(&("AAAA".repeat(10) + "AA=\\u003d")), (Form::JpegBytes as u32, 31));
    assert_eq!(form("AAAA AAAA AAAA"), (Form::JpegDamaged as u32, 10));
    assert_eq!(form("AAAAéAAAAAAA"), (Form::JpegDamaged as u32, 9));
    assert_eq!(form("AAAAéAAAAAAA\\n"), (Form::JpegDamaged as u32, 9));
    let (_, table, ..) = scanned("[\"data:image/png;base64,AAAAAAAAAAAAAAAA\"]", RULES).unwrap();
    assert_eq!(table[0].form, Form::Raw as u32);
}

#[test]
fn images_are_texts_where_texts_are_wanted() {
    let (_, table, ..) =
        scanned("[\"data:image/jpeg;base64,AAAAAAAAAAAAAAAA\"]", Rules { texts: true, ..RULES }).unwrap();
    assert_eq!((table[0].form, table[0].len), (Form::Narrow as u32, 39));
}
