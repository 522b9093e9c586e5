from __future__ import annotations

import tests.profile  # noqa: F401 - loading it sets the profile
