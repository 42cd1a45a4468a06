"""The five published studies, measured again in the lab: what came out beside what their authors found."""
