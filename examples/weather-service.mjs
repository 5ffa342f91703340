// A service of two methods, for the example. Usually `buf generate` makes this from a proto file.
import { create, createFileRegistry, fromJson } from "@bufbuild/protobuf";
import * as wkt from "@bufbuild/protobuf/wkt";

const types = { inputType: ".google.protobuf.Empty", outputType: ".google.protobuf.Struct" };
const file = fromJson(wkt.FileDescriptorProtoSchema, {
  name: "weather.proto",
  package: "weather.v1",
  syntax: "proto3",
  dependency: ["google/protobuf/empty.proto", "google/protobuf/struct.proto"],
  service: [{ name: "Weather", method: ["Forecast", "Archive"].map((name) => ({ name, ...types })) }],
});
const files = [wkt.file_google_protobuf_empty.proto, wkt.file_google_protobuf_struct.proto, file];

export const Weather = createFileRegistry(create(wkt.FileDescriptorSetSchema, { file: files })).getService(
  "weather.v1.Weather",
);
