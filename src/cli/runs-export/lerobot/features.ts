/** The features of a LeRobot dataset: what its rows hold, as `meta/info.json` describes it. */
import type { EpisodeHead } from "../../../client/episode-log/format.ts";
import type { CameraVideo, RunEpisode } from "./episode.ts";

export interface Feature {
  readonly dtype: "float32" | "int64" | "video";
  readonly shape: readonly number[];
  readonly names: readonly string[] | null;
  readonly info?: Readonly<Record<string, string | number | boolean>>;
}

const number = (dtype: "float32" | "int64"): Feature => ({ dtype, shape: [1], names: null });

export function videoKey(camera: string): string {
  return `observation.images.${camera}`;
}

export function featuresOf({ head, videos }: RunEpisode): Readonly<Record<string, Feature>> {
  return {
    "observation.state": vector(head.state),
    action: vector(head.action),
    ...Object.fromEntries(videos.map((video) => [videoKey(video.camera), videoFeature(video)])),
    timestamp: number("float32"),
    frame_index: number("int64"),
    episode_index: number("int64"),
    index: number("int64"),
    task_index: number("int64"),
  };
}

function vector({ names }: EpisodeHead["state"]): Feature {
  return { dtype: "float32", shape: [names.length], names };
}

function videoFeature({ facts }: CameraVideo): Feature {
  const { width, height, fps, codec, pixels, channels, hasAudio } = facts;
  return {
    dtype: "video",
    // Whatever the file holds, its frames are decoded to red, green and blue.
    shape: [height, width, 3],
    names: ["height", "width", "channels"],
    info: {
      "video.height": height,
      "video.width": width,
      "video.codec": codec,
      ...(pixels === undefined ? {} : { "video.pix_fmt": pixels }),
      "video.is_depth_map": false,
      "video.fps": fps,
      "video.channels": channels,
      has_audio: hasAudio,
    },
  };
}
