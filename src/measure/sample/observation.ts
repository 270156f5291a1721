/** The observation that `tendon sample` writes and every measurement sends: that of the example in the documents. */
import { EXAMPLE, EXAMPLE_INSTRUCTION } from "../../robot/docs/example.ts";

/** Its cameras are the views of the drawn scene. */
export const SAMPLE_MODEL = EXAMPLE.model;
export const SAMPLE_INSTRUCTION = EXAMPLE_INSTRUCTION;
/** A resting pose: left joints 1-6, right joints 1-6 in radians; grippers half open. */
export const SAMPLE_STATE = EXAMPLE.robot_state;
