"""Not private: for comparison only, out of reach of the release path."""
