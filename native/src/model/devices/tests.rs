//! Devices with models of which only is kept what they were told.

use super::*;

/// A model of which only is kept what its devices have told it.
struct FakeModel {
    outcomes: Mutex<Vec<Option<String>>>,
}

impl FakeModel {
    fn with(replicas: usize) -> Arc<FakeModel> {
        Arc::new(FakeModel { outcomes: Mutex::new(vec![None; replicas]) })
    }

    fn outcomes(&self) -> Vec<Option<String>> {
        lock(&self.outcomes).clone()
    }
}

impl HostedModel for FakeModel {
    fn lose(&self, replica: usize, reason: &str) {
        lock(&self.outcomes)[replica].get_or_insert(reason.into());
    }
    fn leave(&self, replica: usize) {
        lock(&self.outcomes)[replica].get_or_insert("left".into());
    }
    fn accepts_work(&self, replica: usize) -> bool {
        lock(&self.outcomes)[replica].is_none()
    }
    fn is_out(&self, replica: usize) -> bool {
        !self.accepts_work(replica)
    }
    fn load(&self, _replica: usize) -> Load {
        Load { inferences: 0, slots: 4, slots_held: 1 }
    }
    fn replicas(&self) -> usize {
        lock(&self.outcomes).len()
    }
    fn counted(&self) -> bool {
        true
    }
}

/// A model with a replica on each of these.
fn placed(devices: &Devices, on: &[&str]) -> Arc<FakeModel> {
    let model = FakeModel::with(on.len());
    let weak: Weak<dyn HostedModel> = Arc::downgrade(&(model.clone() as Arc<dyn HostedModel>));
    on.iter().enumerate().for_each(|(replica, name)| devices.named(name).join(weak.clone(), replica));
    model
}

fn reasons(model: &FakeModel) -> Vec<String> {
    model.outcomes().into_iter().map(Option::unwrap_or_default).collect()
}

#[test]
fn a_lost_device_takes_its_replicas_of_every_model_out_at_once_and_no_other() {
    let devices = Devices::default();
    let (one, two) = (placed(&devices, &["cuda:0", "cuda:1", "cuda:0"]), placed(&devices, &["tensorrt:0", "cpu"]));
    devices.named("cuda:0").lose("device lost: 700");
    assert_eq!(reasons(&one), ["device lost: 700", "", "device lost: 700"]);
    assert_eq!(reasons(&two), ["device lost: 700", ""], "both providers of a GPU lose it");
    assert_eq!(devices.named("cuda:0").refusal().as_deref(), Some("device lost: 700"));
    assert_eq!(devices.named("cuda:1").refusal(), None);
    let late = placed(&devices, &["cuda:0"]);
    assert_eq!(reasons(&late), ["device lost: 700"], "one that comes after the loss");
    assert_eq!(devices.named("cuda:0").cause("device lost: 700"), "device_lost");
    assert_eq!(devices.named("cuda:0").cause("its thread ended"), "replica_failed");
}

#[test]
fn a_device_is_drained_while_each_of_its_models_works_elsewhere_too() {
    let devices = Devices::default();
    let model = placed(&devices, &["cuda:0", "cuda:1"]);
    let unknown = devices.drain("cuda:7").expect_err("nothing runs there");
    assert!(unknown.contains("cuda:7"), "{unknown}");
    devices.drain("cuda:1").expect("the model goes on");
    devices.drain("cuda:1").expect("twice is once");
    assert_eq!(reasons(&model), ["", "left"]);
    let last = devices.drain("cuda:0").expect_err("the last one");
    assert!(last.contains("stop the service"), "{last}");
    assert_eq!(reasons(&model), ["", "left"]);
    assert_eq!(devices.named("cuda:1").refusal().as_deref(), Some("it was drained"));
    assert_eq!(devices.named("cuda:1").cause("cuda:1 was drained"), "drained");
}

#[test]
fn a_lost_device_cannot_be_drained_and_a_drained_one_may_still_be_lost() {
    let devices = Devices::default();
    let _model = placed(&devices, &["cuda:0", "cuda:1", "cuda:2"]);
    devices.named("cuda:0").lose("device lost");
    assert!(devices.drain("cuda:0").is_err_and(|text| text.contains("is lost")));
    devices.drain("cuda:1").expect("one is left");
    devices.named("cuda:1").lose("device lost");
    assert_eq!(devices.named("cuda:1").refusal().as_deref(), Some("device lost"));
    assert_eq!(devices.named("cuda:1").cause("cuda:1 was drained"), "drained", "what left before");
}

#[test]
fn a_device_that_was_only_named_or_whose_models_are_gone_is_not_drained() {
    let devices = Devices::default();
    devices.named("cuda:0");
    drop(placed(&devices, &["cuda:1", "cpu"]));
    for name in ["cuda:0", "cuda:1"] {
        assert!(devices.drain(name).is_err_and(|text| text.contains(&format!("no model runs on {name}"))), "{name}");
        assert_eq!(devices.named(name).refusal(), None);
    }
}

#[test]
fn what_was_met_first_is_the_reason_of_every_replica() {
    let devices = Devices::default();
    let first = placed(&devices, &["cuda:0"]);
    devices.named("cuda:0").lose("device lost: 700");
    let second = placed(&devices, &["tensorrt:0"]);
    devices.named("tensorrt:0").lose("device lost: tensorrt:0 says 700");
    assert_eq!([reasons(&first), reasons(&second)].concat(), ["device lost: 700", "device lost: 700"]);
}

#[test]
fn the_figures_of_a_device_are_those_of_its_replicas() {
    let devices = Devices::default();
    let model = placed(&devices, &["cuda:0", "cpu", "cuda:0"]);
    model.lose(2, "its thread ended");
    let [gpu, cpu] = &devices.figures(|queue| 10 + queue)[..] else { panic!("two devices") };
    assert_eq!((gpu.device.as_str(), gpu.health, gpu.replicas, gpu.replicas_out), ("cuda:0", "ready", 2, 1));
    assert_eq!((gpu.load, gpu.frames_waiting), (Load { inferences: 0, slots: 8, slots_held: 2 }, 10));
    assert_eq!((cpu.replicas, cpu.replicas_out, cpu.frames_waiting), (1, 0, 11));
    drop(model);
    assert_eq!(devices.figures(|_| 0), [], "a model that is unloaded is forgotten");
}
