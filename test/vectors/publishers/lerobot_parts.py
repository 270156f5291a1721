"""What LeRobot's families share here: a stand-in in place of the tokenizer that a hub would give, files, and one case through the
pipeline, the policy and the pipeline back.
"""

import json
from pathlib import Path

import torch
from lerobot.processor import PolicyProcessorPipeline, tokenizer_processor
from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action


def tokenizer_from(folder):
    """Every tokenizer that a pipeline names is read from `folder`."""
    known = tokenizer_processor.AutoTokenizer

    class Local:
        @staticmethod
        def from_pretrained(_name, **_):
            return known.from_pretrained(str(folder))

    tokenizer_processor.AutoTokenizer = Local


def statistics(**features):
    return {name: {kind: torch.as_tensor(value) for kind, value in made.items()} for name, made in features.items()}


def save(folder, policy, pipelines):
    """`policy` is None where its files are written already."""
    if policy is not None:
        policy.save_pretrained(folder)
    for pipeline in pipelines:
        pipeline.save_pretrained(folder)
    (Path(folder) / "README.md").unlink(missing_ok=True)


def pipelines_of(folder):
    before = PolicyProcessorPipeline.from_pretrained(folder, config_filename="policy_preprocessor.json")
    after = PolicyProcessorPipeline.from_pretrained(
        folder, config_filename="policy_postprocessor.json", to_transition=policy_action_to_transition, to_output=transition_to_policy_action
    )
    relative = [step for step in before.steps if type(step).__name__ == "RelativeActionsProcessorStep"]
    for step in after.steps:
        if hasattr(step, "relative_step") and relative:
            step.relative_step = relative[0]
    return before, after


def observation_of(pictures, state, instruction):
    """One observation as LeRobot's robots give it: pictures [3, h, w] as floats of 0..1, state float32."""
    made = {key: torch.from_numpy(picture.copy()).permute(2, 0, 1).to(torch.float32) / 255 for key, picture in pictures.items()}
    return made | {"observation.state": torch.tensor(state, dtype=torch.float32), "task": instruction}
