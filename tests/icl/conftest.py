import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Many small operations: more threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
