"""The sixteen methods of the modality study with the parameters they were published with (Jin, Li, Hamarneh 2021).

The paper made its maps with Captum: where the text names no parameter, Captum's default is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heatcheck.core.contracts import Method
from heatcheck.methods.registry import build_method

SUPERVOXELS: Mapping[str, Any] = {"kind": "slic", "count": 50, "compactness": 0.1, "sigma": 2.0, "nonzero": True}
OF_EACH_MODALITY: Mapping[str, Any] = {**SUPERVOXELS, "per_channel": True}
OF_ALL_MODALITIES: Mapping[str, Any] = {**SUPERVOXELS, "per_channel": False}


@dataclass(frozen=True, slots=True)
class Published:
    """One method with the settings that the paper used."""

    method: str  # its name in heatcheck
    called: str  # its name in the paper
    settings: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""  # where heatcheck differs, or may differ, from the paper

    def build(self) -> Method:
        """The method, to which the study still adds donors and priors."""
        return build_method(self.method, self.settings)


MODALITY_STUDY = (
    Published("gradient", "Gradient", remark="signed; Captum's Saliency takes absolute values by default"),
    Published("guided_backprop", "GuidedBackProp"),
    Published("deconvolution", "Deconvolution"),
    Published("input_x_gradient", "InputXGradient"),
    Published("smooth_grad", "SmoothGrad", {"samples": 10, "noise": 1.0, "noise_is": "absolute"}),
    Published("integrated_gradients", "IntegratedGradients", {"steps": 50, "rule": "gauss", "baseline": "zero"}),
    Published("gradient_shap", "GradientShap", {"samples": 5, "noise": 0.0, "baseline_noise": 0.0}),
    Published("deep_lift", "DeepLift", {"baseline": "zero"}),
    Published("grad_cam", "GradCAM", {"placement": "plain"}, "of the last feature map; one map for all modalities"),
    Published("guided_grad_cam", "Guided GradCAM", {"upsampling": "nearest", "placement": "plain"}),
    Published("occlusion", "Occlusion", {"window": 11, "stride": 5, "per_channel": True, "baseline": "zero"}),
    Published("feature_ablation", "FeatureAblation", {"segments": OF_EACH_MODALITY, "baseline": "zero"}),
    Published(
        "shapley_value_sampling",
        "Shapley Value Sampling",
        {"permutations": 25, "segments": OF_EACH_MODALITY, "baseline": "zero"},
    ),
    Published(
        "kernel_shap",
        "KernelSHAP",
        {"samples": 300, "segments": OF_ALL_MODALITIES, "baseline": "zero"},
        "subsets come in complementary pairs, unlike in Captum; one map for all modalities",
    ),
    Published(
        "lime",
        "LIME",
        {
            "samples": 500,
            "surrogate": "ridge",
            "alpha": 0.0,  # linear regression
            "kernel_width": 1.0,
            "segments": OF_EACH_MODALITY,
            "baseline": "zero",
        },
        "similarity is that of the subsets of segments, as in the lime package; in Captum it is that of the images",
    ),
    Published(
        "feature_permutation",
        "Feature Permutation",
        {"segments": OF_ALL_MODALITIES, "donors_each": 1},
        "a segment shows other patients' voxels; Captum shuffles segments within a batch; one map for all modalities",
    ),
)
