import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.context.retrieval.search import VectorFile, fused, nearest
from medassay.errors import IntegrityError


def brute_force(vectors, queries, k):
    """Every distance in double precision, the lower number first among equals."""
    apart = vectors[None].astype(np.float64) - queries[:, None].astype(np.float64)
    distances = np.sqrt(np.einsum("qij,qij->qi", apart, apart))
    ids = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(distances, ids, axis=1)


def on_disk(folder, vectors):
    path = folder / "vectors.f32"
    path.write_bytes(vectors.astype("<f4").tobytes())
    return VectorFile(path, vectors.shape[1], len(vectors))


@pytest.mark.parametrize("k", [1, 3, 50, 10_000])
def test_it_finds_what_brute_force_finds(tmp_path, monkeypatch, k):
    monkeypatch.setattr(VectorFile.blocks, "__defaults__", (700,))
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(5_000, 24)).astype(np.float32)
    vectors[2_000:2_400] = vectors[10]  # equals, in several blocks
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = np.concatenate([vectors[[10, 4_999]], rng.normal(size=(30, 24))]).astype(np.float32)
    ids, distances = nearest(on_disk(tmp_path, vectors), queries, k)
    wanted, apart = brute_force(vectors, queries, k)
    assert (ids == wanted).all()
    assert distances == pytest.approx(apart, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1.0, 1e4]), st.integers(1, 6))
def test_near_ties_that_single_precision_confuses_are_told_apart(tmp_path_factory, seed, scale, k):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=16)
    vectors = (scale * (base + 1e-6 * rng.normal(size=(300, 16)))).astype(np.float32)
    queries = (scale * (base + 1e-6 * rng.normal(size=(4, 16)))).astype(np.float32)
    ids, _ = nearest(on_disk(tmp_path_factory.mktemp("near"), vectors), queries, k)
    assert (ids == brute_force(vectors, queries, k)[0]).all()


def test_a_file_of_another_size_is_told(tmp_path):
    (tmp_path / "vectors.f32").write_bytes(b"1234567")
    with pytest.raises(IntegrityError, match="expected 2 vectors of 3 numbers"):
        VectorFile(tmp_path / "vectors.f32", 3, 2)


def test_a_ranking_that_both_agree_on_comes_first():
    assert [one for one, _ in fused([[1, 2, 3], [2, 9, 1]], 3)] == [2, 1, 9]
    assert fused([[5], [5]], 1)[0][1] == pytest.approx(2 / 61)
    assert [one for one, _ in fused([[8], [4]], 2)] == [4, 8]
