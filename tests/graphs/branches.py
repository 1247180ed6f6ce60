"""A model with an If and an operator of another domain."""

from onnx import parser

BRANCHES = parser.parse_model("""<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
branches (float[N,2] x, bool condition) => (float[N,1] y, float[N,2] scaled)
<float[2,1] w = {1, 2}, float bias = {3}>
{
  z = MatMul (x, w)
  scaled = ai.onnx.ml.Scaler <offset = [0.0], scale = [2.0]> (x)
  y = If (condition) <
    then_branch = one () => (float[N,1] a) { a = Add (z, bias) },
    else_branch = two () => (float[N,1] c) { c = Neg (z) }
  >
}""")
