import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ppsyn.mechanisms.denoise import denoise

COUNTS = hnp.arrays(np.int64, st.integers(1, 60), elements=st.integers(-(10**6), 10**6))


@given(COUNTS, st.floats(1e-3, 1e6), st.integers(0, 2**32))
def test_the_estimate_lies_no_farther_from_the_expectation_than_the_answer(
    noisy: np.ndarray, sigma: float, seed: int
) -> None:
    expected = np.random.default_rng(seed).normal(0, 100, noisy.size)
    estimate, deviation = denoise(noisy, expected, sigma)
    assert 0.3 * sigma <= deviation <= sigma
    assert estimate.shape == noisy.shape
    assert np.linalg.norm(estimate - expected) <= np.linalg.norm(noisy - expected) * (1 + 1e-9) + 1e-9


@given(COUNTS)
def test_an_expected_answer_stays_what_it_is(noisy: np.ndarray) -> None:
    assert np.array_equal(denoise(noisy, noisy.astype(float), 5.0)[0], noisy)


@given(COUNTS)
def test_an_answer_without_noise_is_kept(noisy: np.ndarray) -> None:
    assert np.allclose(denoise(noisy, np.zeros(noisy.size), 1e-9)[0], noisy, atol=1e-6)


def mean_squared_errors(truth: np.ndarray, expected: np.ndarray, sigma: float) -> tuple[float, float]:
    rng = np.random.default_rng(5)
    raw, better = [], []
    for _ in range(300):
        noisy = np.rint(truth + rng.normal(0, sigma, truth.size)).astype(np.int64)
        raw.append(np.mean((noisy - truth) ** 2))
        better.append(np.mean((denoise(noisy, expected, sigma)[0] - truth) ** 2))
    return float(np.mean(raw)), float(np.mean(better))


def test_noise_without_signal_mostly_goes() -> None:
    raw, better = mean_squared_errors(np.full(64, 100.0), np.full(64, 100.0), 20.0)
    assert better < 0.2 * raw


def test_a_smooth_signal_keeps_its_shape_and_loses_noise() -> None:
    wave = 300 + 100 * np.sin(np.linspace(0, 3, 64))
    raw, better = mean_squared_errors(wave, np.full(64, 300.0), 20.0)
    assert better < 0.5 * raw


def test_a_strong_rough_signal_is_hardly_touched() -> None:
    rough = np.random.default_rng(1).normal(0, 500, 64)
    raw, better = mean_squared_errors(rough, np.zeros(64), 20.0)
    assert better < 1.05 * raw


def test_the_deviation_tells_how_much_was_kept() -> None:
    noisy = np.rint(np.random.default_rng(3).normal(0, 20, 64)).astype(np.int64)
    assert denoise(noisy, np.zeros(64), 20.0)[1] < 0.8 * 20
    assert denoise(noisy * 100, np.zeros(64), 20.0)[1] > 0.99 * 20
