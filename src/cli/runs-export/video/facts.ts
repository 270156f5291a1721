/** What a video holds, as far as the rows beside it and a reader's catalogue need it. */

export interface VideoFacts {
  readonly width: number;
  readonly height: number;
  /** Frames a second, constant. */
  readonly fps: number;
  readonly frames: number;
  /** FFmpeg's name of the codec: h264, hevc, av1, mjpeg, … */
  readonly codec: string;
  /** FFmpeg's name of the pixel format, if it can be known without decoding. */
  readonly pixels: string | undefined;
  readonly channels: 1 | 3;
  readonly hasAudio: boolean;
}
