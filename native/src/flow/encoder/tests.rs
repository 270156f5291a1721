//! Encoders that are made by hand.

use super::*;

fn scale(factor: f64, offset: f64) -> Scale {
    Scale::new(factor, offset, (f64::NEG_INFINITY, f64::INFINITY))
}

pub(super) fn encoder(clamp: bool) -> Encoder {
    let column = |name: &str, relative_to| Column {
        name: name.into(),
        relative_to,
        min: -2.0,
        max: 2.0,
        jump: None,
        max_step: None,
    };
    let columns = vec![column("joint", None), column("delta", Some(1))];
    let scales = [scale(0.5, 0.25), scale(1.0, 0.0)].repeat(2);
    Encoder { columns, scales, rows: 2, width: 3, prefix_rows: 1, clamp, rotations: Vec::new() }
}

#[test]
fn values_are_unnormalised_made_absolute_and_their_padding_cut() {
    let mut values = [0.0; 4];
    let clamped = encoder(true).encode(&[], &[1.0, 0.5, 9.0, -1.0, 0.0, 9.0], &[7.0, 0.125], &mut values);
    assert_eq!((clamped, values), (Ok(0), [0.75, 0.625, -0.25, 0.125]));
}

#[test]
fn a_value_out_of_its_range_is_clamped_and_counted_or_refused() {
    let latent = [100.0, 0.0, 0.0, -100.0, 0.0, 0.0];
    let mut values = [0.0; 4];
    assert_eq!(encoder(true).encode(&[], &latent, &[0.0, 0.0], &mut values), Ok(2));
    assert_eq!(values, [2.0, 0.0, -2.0, 0.0]);
    let refusal = encoder(false).encode(&[], &latent, &[0.0, 0.0], &mut values).unwrap_err();
    assert_eq!(refusal, "row 0, joint is 50.25, outside -2 to 2");
}

#[test]
fn a_non_finite_value_is_never_clamped() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        let mut encoder = encoder(true);
        encoder.columns.truncate(1);
        (encoder.rows, encoder.width, encoder.scales) = (1, 1, vec![scale(10.0, 0.0)]);
        assert_eq!(encoder.encode(&[], &[bad], &[], &mut [0.0]).unwrap_err(), "row 0, joint is not a finite number");
    }
}

#[test]
fn an_infinite_value_is_refused_although_its_clip_would_make_it_finite() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut encoder = encoder(true);
        encoder.scales = vec![Scale::new(1.0, 0.0, (-1.0, 1.0)); 4];
        let refusal = encoder.encode(&[], &[0.0, 0.0, 9.0, 0.0, bad, 9.0], &[0.0, 0.0], &mut [0.0; 4]).unwrap_err();
        assert_eq!(refusal, "row 1, delta is not a finite number");
    }
}

#[test]
fn row_0_may_not_jump_from_the_state_nor_a_row_from_the_one_before() {
    let mut limited = encoder(true);
    limited.columns[0].jump = Some((0, 0.5));
    limited.columns[1].max_step = Some(0.5);
    let run = |latent: &[f32], state: &[f32]| limited.encode(&[], latent, state, &mut [0.0; 4]);
    // 0.5 · 0.5 + 0.25 = 0.5, and 0.5 later.
    let good = [0.5, 0.0, 0.0, 0.5, 0.5, 0.0];
    assert_eq!(run(&good, &[0.0, 0.0]), Ok(0));
    assert_eq!(run(&good, &[1.0, 0.0]), Ok(0));
    for (state, size) in [(1.25, "0.750"), (-0.25, "0.750")] {
        assert_eq!(
            run(&good, &[state, 0.0]).unwrap_err(),
            format!("row 0, joint is 0.5, {size} from the state's {state}, max_jump is 0.5")
        );
    }
    assert_eq!(
        run(&[0.5, 0.0, 0.0, 0.5, -0.75, 0.0], &[0.5, 0.0]).unwrap_err(),
        "row 1, delta is -0.75, 0.750 from 0 in the row before, max_step is 0.5"
    );
    // A clamped value is judged as it would be sent.
    assert_eq!(run(&[100.0, 0.0, 0.0, 100.0, 0.0, 0.0], &[1.75, 0.0]), Ok(2));
    assert!(run(&[0.5, 0.0, 0.0, 0.5, 0.0, 0.0], &[f32::NAN, 0.0]).is_err());
}

#[test]
fn a_rotation_is_compared_with_the_states_as_directions() {
    let column = |index: usize| Column {
        name: format!("r{index}"),
        relative_to: None,
        min: -1.0,
        max: 1.0,
        jump: Some((index, 0.01)),
        max_step: None,
    };
    let columns = (0..6).map(column).collect();
    let scales = vec![scale(1.0, 0.0); 6];
    let encoder = Encoder { columns, scales, rows: 1, width: 6, prefix_rows: 0, clamp: true, rotations: vec![0] };
    let latent = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    assert_eq!(encoder.encode(&[], &latent, &[3.0, 0.0, 0.0, 1.0, 0.5, 0.0], &mut [0.0; 6]), Ok(0));
    assert!(encoder.encode(&[], &latent, &[0.0, 3.0, 0.0, 0.5, 0.0, 0.0], &mut [0.0; 6]).is_err());
}
