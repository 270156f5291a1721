/** The weights of ACT as LeRobot keeps them (`policies/act/modeling_act.py`): the table from a graph's names to theirs. */
import type { ActArchitecture } from "../act.ts";
import type { WeightTable } from "./checkpoint-weights.ts";
import { TableWriter } from "./table-writer.ts";

/** Tensors of training: the encoder of the latent, whose value is zeros outside of it, and what that is multiplied by. */
export function isUnusedOfAct(name: string): boolean {
  return name.startsWith("model.vae_encoder") || name === "model.encoder_latent_input_proj.weight";
}

/** The origin of each tensor of the graph. */
export function actTable({ backbone, width, ...size }: ActArchitecture): WeightTable {
  const writer = new TableWriter();
  /** A convolution without a bias, and the batch norm behind it. */
  const convolution = (name: string, from: string, batchNorm: string) => {
    writer.as(`${name}.weight`, { tensor: `${from}.weight`, batchNorm });
    writer.as(`${name}.bias`, { tensor: `${batchNorm}.bias`, batchNorm });
  };
  /** The rows of queries, keys and values stand below one another. */
  const attention = (name: string, from: string) => {
    for (const [index, part] of ["query", "key", "value"].entries()) {
      const rows = [index * width, (index + 1) * width, 3 * width] as const;
      writer.as(`${name}.${part}.weight`, { tensor: `${from}.in_proj_weight`, transpose: true, rows });
      writer.as(`${name}.${part}.bias`, { tensor: `${from}.in_proj_bias`, rows });
    }
    writer.linear(`${name}.output`, `${from}.out_proj`);
  };
  const block = (name: string, from: string, norms: number) => {
    attention(`${name}.attention`, `${from}.self_attn`);
    writer.linear(`${name}.up`, `${from}.linear1`);
    writer.linear(`${name}.down`, `${from}.linear2`);
    for (let at = 1; at <= norms; at += 1) writer.layerNorm(`${name}.norm${at}`, `${from}.norm${at}`);
  };

  convolution("backbone.stem", "model.backbone.conv1", "model.backbone.bn1");
  const convolutions = backbone.bottleneck ? [1, 2, 3] : [1, 2];
  for (const [stage, { blocks }] of backbone.stages.entries()) {
    for (let at = 0; at < blocks; at += 1) {
      const [name, from] = [`backbone.${stage + 1}.${at}`, `model.backbone.layer${stage + 1}.${at}`];
      for (const conv of convolutions) convolution(`${name}.conv${conv}`, `${from}.conv${conv}`, `${from}.bn${conv}`);
      // Only the first stage of two convolutions keeps size and channels.
      if (at === 0 && (stage > 0 || backbone.bottleneck))
        convolution(`${name}.shortcut`, `${from}.downsample.0`, `${from}.downsample.1`);
    }
  }
  writer.convolution("pixels", "model.encoder_img_feat_input_proj");
  writer.bias("latent", "model.encoder_latent_input_proj");
  writer.linear("state", "model.encoder_robot_state_input_proj");
  if (size.environment > 0) writer.linear("environment", "model.encoder_env_state_input_proj");
  writer.as("places", { tensor: "model.encoder_1d_feature_pos_embed.weight" });
  for (let layer = 0; layer < size.encoder_layers; layer += 1)
    block(`encoder.layers.${layer}`, `model.encoder.layers.${layer}`, 2);
  if (size.pre_norm) writer.layerNorm("encoder.norm", "model.encoder.norm");
  writer.as("decoder.places", { tensor: "model.decoder_pos_embed.weight" });
  for (let layer = 0; layer < size.decoder_layers; layer += 1) {
    const [name, from] = [`decoder.layers.${layer}`, `model.decoder.layers.${layer}`];
    block(name, from, 3);
    attention(`${name}.cross`, `${from}.multihead_attn`);
  }
  writer.layerNorm("decoder.norm", "model.decoder.norm");
  writer.linear("head", "model.action_head");
  return writer.table;
}
