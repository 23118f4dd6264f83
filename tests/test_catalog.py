import tomllib
from collections.abc import Callable
from dataclasses import MISSING, fields

import pytest

import asapmodel as am
from asapmodel import catalog
from asapmodel.catalog import _schema
from asapmodel.errors import InputError
from asapmodel.models.parameters import Architecture, Device, Profile
from asapmodel.models.volumes import with_copy_bytes

LOADERS = {
    "models": (Architecture, catalog.load_architecture),
    "devices": (Device, catalog.load_device),
    "profiles": (Profile, catalog.load_profile),
    "clusters": (catalog.Cluster, catalog.load_cluster),
}
ENTRIES = [(kind, name) for kind in LOADERS for name in catalog.names(kind)]


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_every_entry_loads_with_the_origin_of_every_number(kind: str, name: str) -> None:
    record, load = LOADERS[kind]
    value, assumptions = load(name)
    assert isinstance(value, record)
    named = {a.name.rpartition(".")[2] for a in assumptions}
    if kind == "clusters":
        assert named == {"devices"}
    else:
        needed = {f.name for f in fields(record) if f.default is MISSING}
        assert needed <= named <= set(catalog.FIELDS[record]) | set(catalog.CHOICES[record])
    for assumption in assumptions:
        assert assumption.name.startswith(kind.removesuffix("s") + ".")
        assert assumption.kind in ("stated", "measured", "fitted", "assumed")
        assert assumption.source.strip()
        word = assumption.name.rpartition(".")[2] in catalog.CHOICES.get(record, ())
        assert word or float(assumption.value) >= 0


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_every_number_in_the_files_has_value_unit_source_and_kind(kind: str, name: str) -> None:
    data = tomllib.loads(catalog.entry_path(kind, name).read_text())
    for key, number in data.items():
        if key not in ("title", "device", "profile", "covariance", "provenance"):
            needed = {"value", "source", "kind"} if key == "collectives" else {"value", "unit", "source", "kind"}
            assert needed <= number.keys(), key


def test_every_field_of_the_cost_models_is_described() -> None:
    for record, described in catalog.FIELDS.items():
        assert [*described, *catalog.CHOICES[record]] == [f.name for f in fields(record) if f.name != "precision"]


def test_the_paper_s_hardware_and_model() -> None:
    device, _ = catalog.load_device("ascend-910c-die")
    assert device == Device(376e12, 11e12, 64e9, 1.6e12, 196e9, int8_flops=752e12)
    model, _ = catalog.load_architecture("deepseek-v3.2")
    assert (model.layers, model.routed_experts, model.experts_per_token, model.shared_experts) == (61, 256, 8, 1)
    cluster, _ = catalog.load_cluster("cloudmatrix384")
    assert cluster == catalog.Cluster(768, "ascend-910c-die", "cloudmatrix384-paper")
    profile, assumptions = catalog.load_profile(cluster.profile)
    assert profile.host_dispatch == pytest.approx(220e-6)
    assert next(a for a in assumptions if a.name == "profile.host_dispatch").unit == "us"
    # 63 MB per 1k tokens, section 5.4.
    sent = with_copy_bytes(profile, model, device).dispatch_bytes_per_copy
    assert 1024 * model.experts_per_token * sent == pytest.approx(63e6, rel=0.01)


REFUSED = {
    ("kimi-k2", "paper-asap"): "needs 84.1 GB on an expert device, it has 64.0 GB",
    ("mixtral-8x22b", "paper-asap"): "16 expert devices for 8 experts",
    ("mixtral-8x22b", "paper-default"): "32 expert devices for 8 experts",
    ("mixtral-8x22b", "paper-chunked"): "32 expert devices for 8 experts",
}


@pytest.mark.parametrize("system", ["paper-default", "paper-chunked", "paper-asap"])
@pytest.mark.parametrize("model", catalog.names("models"))
def test_every_model_is_served_or_refused_for_a_reason(model: str, system: str) -> None:
    scenario = am.Scenario.load(system).replace(**{"model.use": model})
    if (model, system) in REFUSED:
        with pytest.raises(InputError, match=REFUSED[model, system]):
            am.evaluate(scenario, 1.0)
        apart = system == "paper-asap"
        scenario = scenario.replace(D=4 if apart else 2, T=4, E=32 if apart else None)
        if model == "mixtral-8x22b":
            scenario = scenario.replace(E=8 if apart else None)
    answer = am.evaluate(scenario, 1.0)
    assert 0.01 < answer.ttft.mean_s < 5.0


def test_names_are_sorted_and_kinds_known() -> None:
    assert {"paper-default", "paper-chunked", "paper-asap"} <= set(catalog.names("scenarios"))
    assert list(catalog.names("scenarios")) == sorted(catalog.names("scenarios"))
    with pytest.raises(ValueError, match="no kind 'planets'"):
        catalog.names("planets")


@pytest.mark.parametrize(
    ("load", "name", "message"),
    [
        (
            catalog.load_device,
            "ascend-910c",
            "catalogue: device: no device 'ascend-910c' in the catalogue; the nearest device is 'ascend-910c-die'",
        ),
        (
            catalog.load_architecture,
            "DeepSeek-V3.2",
            "catalogue: model: no model 'DeepSeek-V3.2' in the catalogue; the nearest model is 'deepseek-v3.2'",
        ),
        (
            catalog.load_cluster,
            "../cloudmatrix384",
            "catalogue: cluster: no cluster '../cloudmatrix384' in the catalogue; "
            "the nearest cluster is 'cloudmatrix384'",
        ),
    ],
)
def test_unknown_names(load: Callable[[str], object], name: str, message: str) -> None:
    with pytest.raises(InputError) as info:
        load(name)
    assert str(info.value) == message


def device_text(**changes: str) -> str:
    lines = {
        key: f'{key} = {{ value = 1, unit = "{unit}", kind = "stated", source = "a document" }}'
        for key, unit in {
            "bf16_flops": "TFLOPS",
            "int8_flops": "TOPS",
            "vector_flops": "TFLOPS",
            "memory_bytes": "GiB",
            "memory_bandwidth": "TB/s",
            "link_bandwidth": "GB/s",
        }.items()
    }
    return "\n".join(['title = "A device"', *(lines | changes).values()])


def parse(text: str) -> catalog.Entry[Device]:
    return _schema.parse_entry(Device, text, "x.toml", "device")


def test_units_become_si() -> None:
    assert parse(device_text()).value == Device(1e12, 1e12, 2.0**30, 1e12, 1e9, int8_flops=1e12)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "x.toml: memory_bytes: is missing; add memory_bytes = ... to the file"),
        ("memory_bytes = 64e9", "x.toml: memory_bytes: is 64000000000.0; give a table, key = value"),
        (
            'memory_bytes = { value = 1, unit = "GB", kind = "stated" }',
            "x.toml: memory_bytes.source: is missing; add source = ... to memory_bytes",
        ),
        (
            'memory_bytes = { value = 1, unit = "GB", kind = "guessed", source = "s" }',
            "x.toml: memory_bytes.kind: is 'guessed'; give 'stated', 'measured', 'fitted' or 'assumed'",
        ),
        (
            'memory_bytes = { value = 1, unit = "GB", kind = "fitted", source = "s" }',
            "x.toml: memory_bytes.fitted_to: goes with kind 'fitted', and only with it; say what it was fitted to",
        ),
        (
            'memory_bytes = { value = nan, unit = "GB", kind = "stated", source = "s" }',
            "x.toml: memory_bytes.value: is nan; give a finite number",
        ),
        (
            'memory_bytes = { value = 0, unit = "GB", kind = "stated", source = "s" }',
            "x.toml: memory_bytes: is '0 GB'; give a number greater than 0",
        ),
        (
            'memory_bytes = { value = 1, unit = "ms", kind = "stated", source = "s" }',
            "x.toml: memory_bytes: '1 ms' is a time, not a size; give bytes as a number, "
            "or text with one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
        ),
        (
            'memory_bites = { value = 1, unit = "GB", kind = "stated", source = "s" }',
            "x.toml: memory_bites: unknown key; the nearest valid key is 'memory_bytes'",
        ),
    ],
)
def test_bad_entries(line: str, message: str) -> None:
    with pytest.raises(InputError) as info:
        parse(device_text(memory_bytes=line))
    assert str(info.value) == message


def test_fitted_numbers_say_to_what_and_percent_is_a_unit() -> None:
    number = '{ value = 65, unit = "%", kind = "fitted", source = "our fit", fitted_to = "figure 3a" }'
    text = catalog.entry_path("profiles", "cloudmatrix384-paper").read_text()
    lines = [f"core = {number}" if line.startswith("core =") else line for line in text.splitlines()]
    value, assumptions = _schema.parse_entry(Profile, "\n".join(lines), "x.toml", "profile")
    assert value.core == pytest.approx(0.65)
    assert next(a for a in assumptions if a.name == "profile.core").source == "our fit (fitted to figure 3a)"
    broken = "\n".join(lines).replace('unit = "%"', 'unit = "ms"')
    with pytest.raises(InputError, match=r"x.toml: core.unit: is 'ms'; give '1' or '%' for a plain number"):
        _schema.parse_entry(Profile, broken, "x.toml", "profile")


def test_bad_clusters() -> None:
    with pytest.raises(InputError, match=r"x.toml: devices: is 2.5; give a whole number"):
        _schema.parse_cluster(
            'title = "c"\ndevice = "d"\nprofile = "p"\n'
            'devices = { value = 2.5, unit = "1", kind = "stated", source = "s" }',
            "x.toml",
        )
