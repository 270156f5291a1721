/** The robot request as a client writes it (specification, Chat completion request). */

export interface RobotRequest {
  readonly model: string;
  readonly instruction: string;
  /** JPEG bytes, camera-major, oldest first within a camera. */
  readonly frames: readonly Uint8Array[];
  /** `robot_state`, as in the state file; the service checks its shape. */
  readonly state: object;
  readonly sessionId?: string | undefined;
}

/** The JSON body of `POST /v1/chat/completions`. */
export function requestBody(request: RobotRequest): object {
  const images = request.frames.map((jpeg) => ({
    type: "image_url",
    image_url: { url: `data:image/jpeg;base64,${jpeg.toBase64()}` },
  }));
  return {
    model: request.model,
    messages: [{ role: "user", content: [{ type: "text", text: request.instruction }, ...images] }],
    robot_state: request.state,
    ...(request.sessionId === undefined ? {} : { session_id: request.sessionId }),
  };
}
